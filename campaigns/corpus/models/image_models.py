"""Image classifiers of timm: at least one of each family, narrower or shallower than published."""

from typing import Any

from torch import nn

from campaigns.corpus.recipe import Maker, architecture, image

_TASK = "image classification"
# kernel, hidden channels, channels, squeeze ratio, stride of each block
_GHOSTNET_STAGES = (
    ((3, 16, 16, 0, 1),),
    ((3, 48, 24, 0, 2), (3, 72, 24, 0, 1)),
    ((5, 72, 40, 0.25, 2), (5, 120, 40, 0.25, 1)),
    ((3, 240, 80, 0, 2), (3, 184, 80, 0.25, 1)),
)


def _timm(name: str, side: int = 64, **options: Any) -> tuple[nn.Module, Maker]:
    import timm

    return timm.create_model(name, pretrained=False, num_classes=10, **options), image(3, side)


@architecture("timm", _TASK)
def resnet_10t() -> tuple[nn.Module, Maker]:
    return _timm("resnet10t", channels=(16, 32, 64, 128))


@architecture("timm", _TASK)
def res2net() -> tuple[nn.Module, Maker]:
    return _timm("res2net50_14w_8s", layers=(1, 1, 1, 1), channels=(16, 32, 64, 128))


@architecture("timm", _TASK)
def mobilenet_v4() -> tuple[nn.Module, Maker]:
    return _timm("mobilenetv4_conv_small_050")


@architecture("timm", _TASK)
def ghostnet() -> tuple[nn.Module, Maker]:
    from timm.models.ghostnet import GhostNet

    return GhostNet(_GHOSTNET_STAGES, num_classes=10, width=0.5), image(3, 64)


@architecture("timm", _TASK)
def repvit() -> tuple[nn.Module, Maker]:
    return _timm("repvit_m0_9", embed_dim=(16, 32, 48, 64), depth=(1, 1, 2, 1))


@architecture("timm", _TASK)
def starnet() -> tuple[nn.Module, Maker]:
    return _timm("starnet_s050")


@architecture("timm", _TASK)
def convnext() -> tuple[nn.Module, Maker]:
    return _timm("convnext_atto", depths=(1, 1, 2, 1), dims=(16, 32, 48, 64))


@architecture("timm", _TASK)
def mobilevit() -> tuple[nn.Module, Maker]:
    return _timm("mobilevit_xxs")


@architecture("timm", _TASK)
def efficientvit() -> tuple[nn.Module, Maker]:
    return _timm("efficientvit_b0", depths=(1, 1, 1, 1), widths=(8, 16, 32, 64))


@architecture("timm", _TASK)
def poolformer() -> tuple[nn.Module, Maker]:
    from timm.models.metaformer import GroupNorm1, MetaFormer, Pooling

    options = {"depths": (1, 1, 1, 1), "dims": (16, 32, 48, 64), "token_mixers": Pooling}
    return MetaFormer(num_classes=10, norm_layers=GroupNorm1, **options), image(3, 64)


@architecture("timm", _TASK)
def mlp_mixer() -> tuple[nn.Module, Maker]:
    from timm.models.mlp_mixer import MlpMixer

    return MlpMixer(10, 32, patch_size=8, num_blocks=2, embed_dim=64), image(3, 32)


@architecture("timm", _TASK)
def convmixer() -> tuple[nn.Module, Maker]:
    from timm.models.convmixer import ConvMixer

    return ConvMixer(48, 3, kernel_size=7, patch_size=4, num_classes=10), image(3, 32)


@architecture("timm", _TASK)
def deit() -> tuple[nn.Module, Maker]:
    return _timm(
        "deit_tiny_distilled_patch16_224", 32, img_size=32, patch_size=8, depth=2, embed_dim=48, num_heads=3
    )


@architecture("timm", _TASK)
def xcit() -> tuple[nn.Module, Maker]:
    return _timm("xcit_nano_12_p8_224", 32, img_size=32, depth=2, embed_dim=48, num_heads=4)


@architecture("timm", _TASK)
def levit() -> tuple[nn.Module, Maker]:
    options = {"embed_dim": (48, 64, 96), "num_heads": (3, 4, 6), "depth": (1, 1, 1), "key_dim": 16}
    return _timm("levit_128s", 64, img_size=64, **options)


@architecture("timm", _TASK)
def pvt_v2() -> tuple[nn.Module, Maker]:
    return _timm("pvt_v2_b0", depths=(1, 1, 1, 1), embed_dims=(16, 32, 64, 96), num_heads=(1, 2, 4, 4))


@architecture("timm", _TASK)
def vovnet() -> tuple[nn.Module, Maker]:
    return _timm("ese_vovnet19b_slim_dw", 64)


@architecture("timm", _TASK)
def mambaout() -> tuple[nn.Module, Maker]:
    return _timm("mambaout_femto", depths=(1, 1, 1, 1), dims=(16, 32, 48, 64))
