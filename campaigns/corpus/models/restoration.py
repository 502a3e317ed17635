"""Networks that give pictures: super-resolution and denoising."""

from torch import nn

from campaigns.corpus.recipe import Maker, architecture, unit_image

_SUPER_RESOLUTION, _DENOISING = "super-resolution", "denoising"


@architecture("spandrel", _SUPER_RESOLUTION)
def srvgg_compact() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.Compact.__arch.SRVGG import SRVGGNetCompact

    return SRVGGNetCompact(num_feat=16, num_conv=4, upscale=2), unit_image(3, 32)


@architecture("spandrel", _SUPER_RESOLUTION)
def esrgan() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.ESRGAN.__arch.RRDB import RRDBNet

    return RRDBNet(num_filters=16, num_blocks=1, scale=2), unit_image(3, 24)


@architecture("spandrel", _SUPER_RESOLUTION)
def rcan() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.RCAN import RCAN

    network = RCAN(scale=2, n_resgroups=1, n_resblocks=2, n_feats=16, rgb_range=1, reduction=4)
    return network, unit_image(3, 24)


@architecture("spandrel", _SUPER_RESOLUTION)
def safmn() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.SAFMN import SAFMN

    return SAFMN(dim=16, n_blocks=2, upscaling_factor=2), unit_image(3, 32)


@architecture("spandrel", _SUPER_RESOLUTION)
def plksr() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.PLKSR import PLKSR

    return PLKSR(dim=16, n_blocks=2, upscaling_factor=2, kernel_size=9), unit_image(3, 24)


@architecture("spandrel", _SUPER_RESOLUTION)
def swin_ir() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.SwinIR import SwinIR

    network = SwinIR(
        img_size=16, embed_dim=24, depths=[2], num_heads=[2], window_size=8, mlp_ratio=2, upscale=2,
        upsampler="pixelshuffledirect",
    )  # fmt: skip
    return network, unit_image(3, 16)


@architecture("spandrel", _DENOISING)
def dncnn() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.DnCNN import DnCNN

    return DnCNN(nc=16, nb=6, act_mode="BR"), unit_image(1, 32)


@architecture("spandrel", _DENOISING)
def drunet() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.DRUNet import DRUNet

    return DRUNet(in_nc=1, out_nc=1, nc=[8, 16, 24, 32], nb=1), unit_image(1, 32)


@architecture("spandrel", _DENOISING)
def nafnet() -> tuple[nn.Module, Maker]:
    from spandrel.architectures.NAFNet import NAFNet

    return NAFNet(width=8, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1]), unit_image(3, 32)
