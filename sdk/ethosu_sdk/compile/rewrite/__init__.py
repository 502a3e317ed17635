"""Rewrites of graphs: before quantisation, before and during lowering, in Vela's graph, and after lowering."""
