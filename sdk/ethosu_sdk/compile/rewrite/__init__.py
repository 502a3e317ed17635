"""Rewrites of graphs: before quantisation, before and during lowering, in the graph that Vela gets, and after lowering."""
