"""Image classifiers of torchvision and of packages built on one network."""

from torch import nn

from campaigns.corpus.recipe import Maker, architecture, image

_CLASSES = 10
_TASK = "image classification"


@architecture("torchvision", _TASK)
def mobilenet_v2() -> tuple[nn.Module, Maker]:
    from torchvision.models import mobilenet_v2

    return mobilenet_v2(weights=None, width_mult=0.35, num_classes=_CLASSES), image(3, 64)


@architecture("torchvision", _TASK)
def mobilenet_v3_small() -> tuple[nn.Module, Maker]:
    from torchvision.models import mobilenet_v3_small

    return mobilenet_v3_small(weights=None, num_classes=_CLASSES), image(3, 64)


@architecture("torchvision", _TASK)
def shufflenet_v2() -> tuple[nn.Module, Maker]:
    from torchvision.models import shufflenetv2

    network = shufflenetv2.ShuffleNetV2([2, 3, 2], [24, 48, 96, 192, 256], num_classes=_CLASSES)
    return network, image(3, 64)


@architecture("torchvision", _TASK)
def squeezenet() -> tuple[nn.Module, Maker]:
    from torchvision.models import squeezenet1_1

    return squeezenet1_1(weights=None, num_classes=_CLASSES), image(3, 64)


@architecture("torchvision", _TASK)
def resnext() -> tuple[nn.Module, Maker]:
    from torchvision.models import resnet

    blocks = [1, 1, 1, 1]
    network = resnet.ResNet(resnet.Bottleneck, blocks, _CLASSES, groups=8, width_per_group=4)
    return network, image(3, 64)


@architecture("torchvision", _TASK)
def densenet() -> tuple[nn.Module, Maker]:
    from torchvision.models import DenseNet

    network = DenseNet(12, (2, 3, 2), 24, bn_size=2, num_classes=_CLASSES)
    return network, image(3, 64)


@architecture("torchvision", _TASK)
def regnet_y() -> tuple[nn.Module, Maker]:
    from torchvision.models import regnet

    parameters = regnet.BlockParams.from_init_params(
        depth=6, w_0=24, w_a=24.48, w_m=2.54, group_width=8, se_ratio=0.25
    )
    return regnet.RegNet(parameters, num_classes=_CLASSES), image(3, 64)


@architecture("torchvision", _TASK)
def vision_transformer() -> tuple[nn.Module, Maker]:
    from torchvision.models import VisionTransformer

    network = VisionTransformer(
        32, 8, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=_CLASSES
    )
    return network, image(3, 32)


@architecture("torchvision", _TASK)
def swin_transformer() -> tuple[nn.Module, Maker]:
    from torchvision.models import SwinTransformer

    network = SwinTransformer(
        [4, 4], 32, depths=[2, 2], num_heads=[2, 4], window_size=[4, 4], num_classes=_CLASSES
    )
    return network, image(3, 64)


@architecture("efficientnet-pytorch", _TASK)
def efficientnet_b0() -> tuple[nn.Module, Maker]:
    from efficientnet_pytorch import EfficientNet
    from efficientnet_pytorch.utils import efficientnet

    blocks, settings = efficientnet(
        width_coefficient=0.5, depth_coefficient=0.4, image_size=64, num_classes=_CLASSES
    )
    return EfficientNet(blocks, settings), image(3, 64)


@architecture("facenet-pytorch", "face detection")
def mtcnn_p_net() -> tuple[nn.Module, Maker]:
    from facenet_pytorch.models.mtcnn import PNet

    return PNet(pretrained=False), image(3, 48)


@architecture("vit-pytorch", _TASK)
def compact_convolutional_transformer() -> tuple[nn.Module, Maker]:
    from vit_pytorch.cct import CCT

    network = CCT(
        img_size=32, embedding_dim=64, n_conv_layers=2, num_layers=2, num_heads=4, mlp_ratio=2.0,
        num_classes=_CLASSES, positional_embedding="learnable",
    )  # fmt: skip
    return network, image(3, 32)
