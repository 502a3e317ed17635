"""Networks on sequences: speech and keywords, time series, text."""

import torch
from torch import nn

from campaigns.corpus.recipe import Maker, Returning, architecture, flat, image, last, signal, tokens

_SPEECH, _KEYWORDS, _DENOISING = "speech recognition", "keyword spotting", "source separation"
_FORECAST, _TEXT = "time series", "text"


@architecture("torchaudio", _SPEECH)
def deep_speech() -> tuple[nn.Module, Maker]:
    from torchaudio.models import DeepSpeech

    frames = last(signal(8, 20))
    return DeepSpeech(n_feature=20, n_hidden=32, n_class=12), lambda seed, batch: (
        frames(seed, batch)[0][:, None],
    )


@architecture("torchaudio", _SPEECH)
def conformer_layer() -> tuple[nn.Module, Maker]:
    from torchaudio.models.conformer import ConformerLayer

    class Encoder(nn.Module):
        """Two layers without padding."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(ConformerLayer(32, 64, 4, 7) for _ in range(2))

        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            frames = frames.transpose(0, 1)
            for layer in self.layers:
                frames = layer(frames, None)
            return frames.transpose(0, 1)

    return Encoder(), last(signal(32, 32))


@architecture("torchaudio", _DENOISING)
def conv_tasnet() -> tuple[nn.Module, Maker]:
    from torchaudio.models import ConvTasNet

    network = ConvTasNet(
        num_sources=2,
        enc_num_feats=32,
        msk_num_feats=16,
        msk_num_hidden_feats=32,
        msk_num_layers=3,
        msk_num_stacks=1,
    )
    return network, signal(512)


@architecture("torchaudio", "speech synthesis")
def mel_resnet() -> tuple[nn.Module, Maker]:
    from torchaudio.models.wavernn import MelResNet

    return MelResNet(n_res_block=3, n_freq=20, n_hidden=32, n_output=32), signal(40, 20)


@architecture("torchaudio", _SPEECH)
def wav2vec2() -> tuple[nn.Module, Maker]:
    from torchaudio.models import wav2vec2_model

    network = wav2vec2_model(
        extractor_mode="group_norm", extractor_conv_layer_config=[(16, 10, 5), (16, 3, 2), (16, 3, 2)],
        extractor_conv_bias=False, encoder_embed_dim=32, encoder_projection_dropout=0.0, encoder_pos_conv_kernel=8,
        encoder_pos_conv_groups=4, encoder_num_layers=2, encoder_num_heads=4, encoder_attention_dropout=0.0,
        encoder_ff_interm_features=64, encoder_ff_interm_dropout=0.0, encoder_dropout=0.0,
        encoder_layer_norm_first=False, encoder_layer_drop=0.0, aux_num_out=12,
    )  # fmt: skip
    return Returning(network, lambda found: found[0]), flat(signal(800))


@architecture("conformer", _SPEECH)
def conformer_block() -> tuple[nn.Module, Maker]:
    from conformer import ConformerBlock

    network = ConformerBlock(dim=32, dim_head=16, heads=2, ff_mult=2, conv_kernel_size=7)
    return network, last(signal(32, 32))


@architecture("transformers", _SPEECH)
def whisper_encoder() -> tuple[nn.Module, Maker]:
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    network = WhisperEncoder(
        WhisperConfig(
            num_mel_bins=40, d_model=48, encoder_layers=2, encoder_attention_heads=3, encoder_ffn_dim=96,
            max_source_positions=32, init_std=0.1, decoder_layers=1, vocab_size=64, pad_token_id=0,
        )
    )  # fmt: skip
    return Returning(network, lambda found: found.last_hidden_state), signal(64, 40)


@architecture("transformers", _KEYWORDS)
def audio_spectrogram_transformer() -> tuple[nn.Module, Maker]:
    from transformers import ASTConfig, ASTForAudioClassification

    network = ASTForAudioClassification(
        ASTConfig(
            hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96, patch_size=8,
            frequency_stride=8, time_stride=8, max_length=48, num_mel_bins=40, num_labels=12,
            initializer_range=0.1,
        )
    )  # fmt: skip
    return Returning(network, lambda found: found.logits), last(signal(48, 40))


@architecture("timm", _KEYWORDS)
def keyword_resnet() -> tuple[nn.Module, Maker]:
    import timm

    network = timm.create_model("resnet10t", in_chans=1, num_classes=12, channels=(16, 24, 32, 48))
    return network, image(1, 40, 48)


@architecture("pytorch-tcn", _KEYWORDS)
def tcn_causal() -> tuple[nn.Module, Maker]:
    from pytorch_tcn import TCN

    network = TCN(10, [16, 16, 16], kernel_size=3, causal=True, use_norm="batch_norm")
    return network, signal(49, 10)


@architecture("pytorch-tcn", _FORECAST)
def tcn_skip() -> tuple[nn.Module, Maker]:
    from pytorch_tcn import TCN

    network = TCN(
        4, [16, 16, 24], kernel_size=3, causal=False, use_norm="weight_norm", use_skip_connections=True
    )
    return network, signal(48, 4)


@architecture("nbeats-pytorch", _FORECAST)
def nbeats() -> tuple[nn.Module, Maker]:
    from nbeats_pytorch.model import NBeatsNet

    network = NBeatsNet(
        stack_types=("generic", "trend", "seasonality"), nb_blocks_per_stack=1, forecast_length=8,
        backcast_length=32, thetas_dim=(8, 4, 8), hidden_layer_units=48,
    )  # fmt: skip
    # Its blocks hide in lists, and the list of their parameters hides nn.Module.parameters.
    del network._modules["parameters"]
    network.blocks = nn.ModuleList(block for stack in network.stacks for block in stack)
    return network, flat(signal(32))


@architecture("pytorch-tsmixer", _FORECAST)
def tsmixer() -> tuple[nn.Module, Maker]:
    from torchtsmixer import TSMixer

    network = TSMixer(32, 8, input_channels=6, num_blocks=2, ff_dim=24, norm_type="layer")
    return network, last(signal(32, 6))


@architecture("transformers", _FORECAST)
def patch_tsmixer() -> tuple[nn.Module, Maker]:
    from transformers import PatchTSMixerConfig, PatchTSMixerForPrediction

    network = PatchTSMixerForPrediction(
        PatchTSMixerConfig(
            context_length=32, patch_length=8, patch_stride=8, num_input_channels=3, d_model=16, num_layers=2,
            prediction_length=8, scaling=None, loss="mse",
        )
    )  # fmt: skip
    return Returning(network, lambda found: found.prediction_outputs), last(signal(32, 3))


@architecture("transformers", _FORECAST)
def patch_tst() -> tuple[nn.Module, Maker]:
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    network = PatchTSTForPrediction(
        PatchTSTConfig(
            context_length=32, patch_length=8, patch_stride=8, num_input_channels=3, d_model=32, num_hidden_layers=2,
            num_attention_heads=4, ffn_dim=64, prediction_length=8, scaling=None, loss="mse", pooling_type=None,
        )
    )  # fmt: skip
    return Returning(network, lambda found: found.prediction_outputs), last(signal(32, 3))


@architecture("vit-pytorch", _FORECAST)
def vit_1d() -> tuple[nn.Module, Maker]:
    from vit_pytorch.vit_1d import ViT

    network = ViT(
        seq_len=64, patch_size=8, num_classes=5, dim=48, depth=2, heads=3, mlp_dim=96, channels=4, dim_head=16
    )
    return network, signal(64, 4)


def _text(kind: str, configuration: str, **options: object) -> tuple[nn.Module, Maker]:
    import transformers

    settings = getattr(transformers, configuration)(vocab_size=64, **options)
    settings._attn_implementation = "eager"
    network = getattr(transformers, kind)(settings)
    return Returning(network, lambda found: found[0]), tokens(16, 64)


_BERT = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}


@architecture("transformers", _TEXT)
def bert() -> tuple[nn.Module, Maker]:
    return _text("BertForSequenceClassification", "BertConfig", **_BERT)


@architecture("transformers", _TEXT)
def distilbert() -> tuple[nn.Module, Maker]:
    return _text(
        "DistilBertForSequenceClassification",
        "DistilBertConfig",
        dim=48,
        n_layers=2,
        n_heads=3,
        hidden_dim=96,
        initializer_range=0.1,
    )


@architecture("transformers", _TEXT)
def gpt2() -> tuple[nn.Module, Maker]:
    return _text(
        "GPT2LMHeadModel", "GPT2Config", n_embd=48, n_layer=2, n_head=3, n_positions=16, use_cache=False
    )


@architecture("transformers", _TEXT)
def llama() -> tuple[nn.Module, Maker]:
    options = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 3}
    return _text("LlamaForCausalLM", "LlamaConfig", intermediate_size=96, use_cache=False, **options)
