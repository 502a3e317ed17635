"""Networks with a value for each place: segmentation and detection."""

from typing import Any

from torch import nn

from campaigns.corpus.recipe import Maker, Returning, architecture, image

_SEGMENTATION, _DETECTION, _DEPTH = "segmentation", "object detection", "depth estimation"
_DECODER = (64, 48, 32, 16, 16)


def _smp(
    kind: str, encoder: str = "timm-mobilenetv3_small_minimal_100", side: int = 64, **options: Any
) -> tuple[nn.Module, Maker]:
    import segmentation_models_pytorch

    network = getattr(segmentation_models_pytorch, kind)(encoder, encoder_weights=None, classes=4, **options)
    return network, image(3, side)


@architecture("segmentation-models-pytorch", _SEGMENTATION)
def unet_mobilenet_v3() -> tuple[nn.Module, Maker]:
    return _smp("Unet", decoder_channels=_DECODER)


@architecture("segmentation-models-pytorch", _SEGMENTATION)
def unet_plus_plus() -> tuple[nn.Module, Maker]:
    return _smp("UnetPlusPlus", encoder_depth=3, decoder_channels=(32, 24, 16))


@architecture("segmentation-models-pytorch", _SEGMENTATION)
def linknet() -> tuple[nn.Module, Maker]:
    return _smp("Linknet")


@architecture("segmentation-models-pytorch", _SEGMENTATION)
def fpn() -> tuple[nn.Module, Maker]:
    return _smp("FPN", decoder_pyramid_channels=32, decoder_segmentation_channels=32)


@architecture("segmentation-models-pytorch", _SEGMENTATION)
def pspnet() -> tuple[nn.Module, Maker]:
    return _smp("PSPNet", psp_out_channels=64)


@architecture("segmentation-models-pytorch", _SEGMENTATION)
def deeplab_v3_plus() -> tuple[nn.Module, Maker]:
    return _smp("DeepLabV3Plus", decoder_channels=32, decoder_atrous_rates=(2, 4, 6))


@architecture("torchvision", _SEGMENTATION)
def lraspp_mobilenet_v3() -> tuple[nn.Module, Maker]:
    from torchvision.models.segmentation import lraspp_mobilenet_v3_large

    network = lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)
    return Returning(network, lambda found: found["out"]), image(3, 64)


@architecture("transformers", _SEGMENTATION)
def segformer() -> tuple[nn.Module, Maker]:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    network = SegformerForSemanticSegmentation(
        SegformerConfig(
            depths=[1, 1, 1, 1], hidden_sizes=[16, 32, 48, 64], num_attention_heads=[1, 2, 3, 4],
            decoder_hidden_size=32, num_labels=4,
        )
    )  # fmt: skip
    return Returning(network, lambda found: found.logits), image(3, 64)


@architecture("monai", _SEGMENTATION)
def basic_unet() -> tuple[nn.Module, Maker]:
    from monai.networks.nets import BasicUNet

    return BasicUNet(2, 1, 3, features=(8, 8, 16, 32, 48, 8), norm="batch"), image(1, 64)


@architecture("monai", _SEGMENTATION)
def attention_unet() -> tuple[nn.Module, Maker]:
    from monai.networks.nets import AttentionUnet

    return AttentionUnet(2, 1, 3, channels=(8, 16, 32), strides=(2, 2)), image(1, 48)


@architecture("monai", _SEGMENTATION)
def seg_resnet() -> tuple[nn.Module, Maker]:
    from monai.networks.nets import SegResNet

    network = SegResNet(2, 8, 1, 3, norm=("batch", {}), blocks_down=(1, 1, 2), blocks_up=(1, 1))
    return network, image(1, 48)


@architecture("monai", _SEGMENTATION)
def seg_resnet_group_norm() -> tuple[nn.Module, Maker]:
    from monai.networks.nets import SegResNet

    return SegResNet(2, 8, 1, 3, blocks_down=(1, 1, 1), blocks_up=(1, 1)), image(1, 48)


@architecture("monai", _SEGMENTATION)
def unetr() -> tuple[nn.Module, Maker]:
    from monai.networks.nets import UNETR

    network = UNETR(
        1, 3, 48, feature_size=8, hidden_size=48, mlp_dim=96, num_heads=4, spatial_dims=2, norm_name="batch"
    )
    return network, image(1, 48)


@architecture("torchvision", _DETECTION)
def ssdlite() -> tuple[nn.Module, Maker]:
    from torchvision.models import mobilenet_v2
    from torchvision.models.detection.ssdlite import SSDLiteHead

    class Detector(nn.Module):
        """Boxes and scores of two levels, before suppression."""

        def __init__(self) -> None:
            super().__init__()
            features = mobilenet_v2(weights=None, width_mult=0.35).features
            self.near, self.far = features[:14], features[14:18]
            self.head = SSDLiteHead([32, 112], [6, 6], 5, nn.BatchNorm2d)

        def forward(self, picture: Any) -> Any:
            near = self.near(picture)
            found = self.head([near, self.far(near)])
            return found["cls_logits"], found["bbox_regression"]

    return Detector(), image(3, 96)


@architecture("torchvision", _DETECTION)
def retinanet() -> tuple[nn.Module, Maker]:
    from torchvision.models import resnet
    from torchvision.models.detection.backbone_utils import BackboneWithFPN
    from torchvision.models.detection.retinanet import RetinaNetHead

    class Detector(nn.Module):
        """Boxes and scores of a feature pyramid, before suppression."""

        def __init__(self) -> None:
            super().__init__()
            body = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1])
            self.pyramid = BackboneWithFPN(body, {"layer2": "0", "layer3": "1"}, [128, 256], 32)
            self.head = RetinaNetHead(32, 3, 4)
            for layer in self.head.modules():  # its own start, for training, all but hides the input
                if isinstance(layer, nn.Conv2d):
                    nn.init.kaiming_normal_(layer.weight)

        def forward(self, picture: Any) -> Any:
            found = self.head(list(self.pyramid(picture).values()))
            return found["cls_logits"], found["bbox_regression"]

    return Detector(), image(3, 64)


def _yolo(configuration: str) -> tuple[nn.Module, Maker]:
    from ultralytics.nn.tasks import DetectionModel, yaml_model_load

    settings = yaml_model_load(configuration)
    settings["scales"] = {"n": [0.33, 0.125, 256]}
    settings["scale"] = "n"
    network = DetectionModel(settings, ch=3, nc=4, verbose=False)
    head = network.model[-1]
    head.export, head.format = True, "executorch"
    return network, image(3, 64)


@architecture("ultralytics", _DETECTION)
def yolo_v8() -> tuple[nn.Module, Maker]:
    return _yolo("yolov8n.yaml")


@architecture("ultralytics", _DETECTION)
def yolo_11() -> tuple[nn.Module, Maker]:
    return _yolo("yolo11n.yaml")


@architecture("transformers", _DETECTION)
def yolos() -> tuple[nn.Module, Maker]:
    from transformers import YolosConfig, YolosForObjectDetection

    network = YolosForObjectDetection(
        YolosConfig(
            hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, image_size=[48, 48],
            patch_size=8, num_detection_tokens=6, use_mid_position_embeddings=False,
            initializer_range=0.2,
        )
    )  # fmt: skip
    return Returning(network, lambda found: (found.logits, found.pred_boxes)), image(3, 48)


@architecture("transformers", _DEPTH)
def dpt() -> tuple[nn.Module, Maker]:
    from transformers import DPTConfig, DPTForDepthEstimation

    network = DPTForDepthEstimation(
        DPTConfig(
            hidden_size=48, num_hidden_layers=4, num_attention_heads=3, intermediate_size=96, image_size=64,
            patch_size=16, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 24, 32, 48],
            fusion_hidden_size=16, use_auxiliary_head=False, initializer_range=0.2,
        )
    )  # fmt: skip
    return Returning(network, lambda found: found.predicted_depth), image(3, 64)
