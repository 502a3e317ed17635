"""Vela's debug database, written by hand."""

TABLES = {
    "source": '"id","operator","ext_key"\n1,"Const",0\n5,"Conv2D",7\n6,"Rescale",-1\n',
    "optimised": '"id","source_id","operator"\n10,5,"Conv2D"\n11,0,"Copy"\n12,6,"Rescale"\n',
    "perf": '"id","operator","name","op_cycles","mac_count","staging_usage"\n20,"Conv2D","out",300,400,640\n'
    '21,"Copy","#99",5,"",""\n',
    "queue": '"offset","cmdstream_id","optimised_id","scheduled_id"\n64,1,10,20\n96,1,10,20\n120,1,11,21\n'
    "200,1,12,22\n",
}


def database(**changes: str) -> bytes:
    parts = "".join(
        f'<table name="{name}">\n<![CDATA[\n{text}]]>\n</table>\n'
        for name, text in {**TABLES, **changes}.items()
    )
    return f"<?xml version='1.0' encoding='UTF-8'?>\n<debug source='x'>\n{parts}</debug>\n".encode()


SHAPES = ("shape", "slice")
COLUMNS = ",".join(
    ['"id","weight_format","transpose_type"', *(f'"ofm_{what}_{axis}"' for what in SHAPES for axis in "nhwc")]
)


def layer(weight_format: str, transpose_type: str, shape: str, part: str) -> bytes:
    """A database whose operation 20 is such a layer."""
    return database(
        perf_debug=f'{COLUMNS}\n20,"{weight_format}","{transpose_type}",{shape},{part}\n'
        f'21,"","NCHW",{shape},{part}\n'
    )
