#!/usr/bin/env python3
"""Writes a corpus of real architectures as TorchScript files: make_architectures.py FOLDER [NAME...].

Library code (torchvision, timm, transformers, torch.nn) in narrow, shallow configurations with random
weights; batch norm is replaced by group norm. Every model takes one tensor, [B, C, H, W] float or
[B, T] int64, and returns logits [B, 10]. Files, all made in train mode:
  NAME.trace.pt         traced with dropout / stochastic depth active (if the model has any)
  NAME.nodrop.trace.pt  traced with dropout 0, only for the models that have dropout
  NAME.script.pt        scripted (dropout active; .eval() switches it off), where torch.jit.script works
index.json describes every file and what the checks on batches of 1, 2 and 5 found.
"""
import copy, io, json, math, os, sys, time, traceback, warnings
from functools import partial
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
warnings.filterwarnings("ignore")
import torch
from torch import nn, Tensor
import torch.nn.functional as F
torch.set_num_threads(1)
from typing import List, Optional, Tuple

CLASSES, VOCAB, T = 10, 100, 16
REGISTRY = []


def arch(name, kind="image", size=32, dropout=False, script=True, source="", channels=3, note=""):
    """kind: image ([channels,size,size]) or tokens ([T])."""
    def register(build):
        REGISTRY.append(dict(name=name, kind=kind, size=size, dropout=dropout, script=script,
                             source=source, channels=channels, note=note, build=build))
        return build
    return register


def groups(c, most=8):
    return next(g for g in range(max(1, min(most, c // 2)), 0, -1) if c % g == 0)  # two channels a group


def GN(c, *args, **kwargs):
    return nn.GroupNorm(groups(c), c)


def no_batch_norm(m):
    """Every batch norm becomes a group norm (timm's BatchNormAct2d keeps its activation)."""
    for k, child in list(m.named_children()):
        if isinstance(child, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
            new = nn.GroupNorm(groups(child.num_features), child.num_features)
            if hasattr(child, "act") and isinstance(child.act, nn.Module):
                new = nn.Sequential(new, getattr(child, "drop", nn.Identity()), child.act)
            setattr(m, k, new)
        else:
            no_batch_norm(child)
    return m


def bare(cls):
    """An object of a library class whose __init__ would build layers that are too wide."""
    m = cls.__new__(cls)
    nn.Module.__init__(m)
    return m


class Pick(nn.Module):
    """The logits of a model that returns an object (Hugging Face)."""
    def __init__(self, m, **kw):
        super().__init__()
        self.m, self.kw = m, kw

    def forward(self, x):
        return self.m(input_ids=x, **self.kw).logits


class PoolHead(nn.Module):
    def __init__(self, m, width, how="mean", **kw):
        super().__init__()
        self.m, self.head, self.how, self.kw = m, nn.Linear(width, CLASSES), how, kw

    def forward(self, x):
        h = self.m(input_ids=x, **self.kw).last_hidden_state
        return self.head(h.mean(1) if self.how == "mean" else h[:, -1] if self.how == "last" else h[:, 0])


# ---------------------------------------------------------------- torchvision
import torchvision
from torchvision import models as tv
from torchvision.models import resnet as tv_resnet


def narrow_resnet(block, layers, planes, groups_=1, base_width=64, stem=16):
    m = bare(tv_resnet.ResNet)
    m._norm_layer = GN
    m.inplanes, m.dilation, m.groups, m.base_width = stem, 1, groups_, base_width
    m.conv1 = nn.Conv2d(3, stem, 7, stride=2, padding=3, bias=False)
    m.bn1, m.relu, m.maxpool = GN(stem), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    m.layer1 = m._make_layer(block, planes[0], layers[0])
    m.layer2 = m._make_layer(block, planes[1], layers[1], stride=2)
    m.layer3 = m._make_layer(block, planes[2], layers[2], stride=2)
    m.layer4 = m._make_layer(block, planes[3], layers[3], stride=2)
    m.avgpool = nn.AdaptiveAvgPool2d((1, 1))
    m.fc = nn.Linear(planes[3] * block.expansion, CLASSES)
    return m


@arch("resnet18", source="torchvision ResNet/BasicBlock")
def _(drop): return narrow_resnet(tv_resnet.BasicBlock, [2, 2, 2, 2], [16, 16, 32, 64])

@arch("resnet_bottleneck", source="torchvision ResNet/Bottleneck")
def _(drop): return narrow_resnet(tv_resnet.Bottleneck, [1, 2, 2, 1], [8, 16, 16, 32])

@arch("resnext", source="torchvision ResNet/Bottleneck, 4 groups")
def _(drop): return narrow_resnet(tv_resnet.Bottleneck, [1, 1, 1, 1], [8, 16, 16, 32], groups_=4, base_width=32)

@arch("wide_resnet_bottleneck", source="torchvision ResNet/Bottleneck, base_width 128")
def _(drop): return narrow_resnet(tv_resnet.Bottleneck, [1, 1, 1, 1], [8, 8, 16, 16], base_width=128)

@arch("densenet", dropout=True, source="torchvision DenseNet")
def _(drop): return no_batch_norm(tv.DenseNet(8, (2, 2, 2), 16, bn_size=2, drop_rate=drop, num_classes=CLASSES))

@arch("googlenet", size=64, dropout=True, script=False, source="torchvision GoogLeNet, no aux heads")
def _(drop):
    import importlib
    g = importlib.import_module("torchvision.models.googlenet")
    C, I, m = g.BasicConv2d, g.Inception, bare(g.GoogLeNet)
    m.aux_logits, m.transform_input = False, False
    m.conv1 = C(3, 16, kernel_size=7, stride=2, padding=3)
    m.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
    m.conv2, m.conv3 = C(16, 16, kernel_size=1), C(16, 32, kernel_size=3, padding=1)
    m.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
    m.inception3a = I(32, 8, 8, 16, 4, 8, 8)
    m.inception3b = I(40, 8, 8, 16, 4, 8, 8)
    m.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
    for k in "abcde":
        setattr(m, "inception4" + k, I(40, 8, 8, 16, 4, 8, 8))
    m.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
    m.inception5a, m.inception5b = I(40, 8, 8, 16, 4, 8, 8), I(40, 16, 8, 24, 4, 8, 16)
    m.aux1 = m.aux2 = None
    m.avgpool, m.dropout, m.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Dropout(drop), nn.Linear(64, CLASSES)
    class M(nn.Module):
        def __init__(self): super().__init__(); self.m = no_batch_norm(m)
        def forward(self, x):
            y = self.m(x)
            if torch.jit.is_scripting(): return y.logits
            return y
    return M()

@arch("inception_blocks", size=32, dropout=True, source="torchvision InceptionA/B/C/D/E blocks")
def _(drop):
    import importlib
    v = importlib.import_module("torchvision.models.inception")
    return no_batch_norm(nn.Sequential(
        v.BasicConv2d(3, 16, kernel_size=3, padding=1), nn.MaxPool2d(2), v.InceptionA(16, 16),
        nn.Conv2d(240, 16, 1), v.InceptionC(16, 8), nn.AdaptiveAvgPool2d(1), nn.Dropout(drop), nn.Flatten(),
        nn.Linear(768, CLASSES)))

@arch("squeezenet", size=32, dropout=True, source="torchvision SqueezeNet/Fire")
def _(drop):
    from torchvision.models.squeezenet import Fire, SqueezeNet
    m = bare(SqueezeNet)
    m.num_classes = CLASSES
    m.features = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(inplace=True),
                               nn.MaxPool2d(3, 2, ceil_mode=True), Fire(16, 4, 16, 16), Fire(32, 4, 16, 16),
                               nn.MaxPool2d(3, 2, ceil_mode=True), Fire(32, 8, 32, 32), Fire(64, 8, 32, 32))
    m.classifier = nn.Sequential(nn.Dropout(drop), nn.Conv2d(64, CLASSES, 1), nn.ReLU(inplace=True),
                                 nn.AdaptiveAvgPool2d((1, 1)))
    return m

@arch("shufflenet_v2", size=64, source="torchvision ShuffleNetV2")
def _(drop): return no_batch_norm(tv.ShuffleNetV2([2, 2, 2], [16, 32, 64, 64, 64], num_classes=CLASSES))

@arch("mobilenet_v2", size=64, dropout=True, source="torchvision MobileNetV2")
def _(drop):
    return tv.MobileNetV2(num_classes=CLASSES, width_mult=0.25, norm_layer=GN, dropout=drop, inverted_residual_setting=[
        [1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2], [6, 64, 2, 2]])

@arch("mobilenet_v3", size=64, dropout=True, source="torchvision MobileNetV3 small")
def _(drop):
    from torchvision.models import mobilenetv3 as v
    settings, last = v._mobilenet_v3_conf("mobilenet_v3_small", width_mult=0.25)
    return v.MobileNetV3(settings, 64, num_classes=CLASSES, norm_layer=GN, dropout=drop)

@arch("mnasnet", size=64, dropout=True, source="torchvision MNASNet alpha 0.1")
def _(drop):
    from torchvision.models import mnasnet as v
    m = v.MNASNet(0.1, num_classes=CLASSES, dropout=drop)
    m.layers[14] = nn.Conv2d(m.layers[14].in_channels, 64, 1, bias=False)
    m.layers[15] = nn.BatchNorm2d(64)
    m.classifier[1] = nn.Linear(64, CLASSES)
    return no_batch_norm(m)

@arch("efficientnet", size=64, dropout=True, source="torchvision EfficientNet, stochastic depth (row)")
def _(drop):
    from torchvision.models import efficientnet as v
    c = partial(v.MBConvConfig, width_mult=0.5, depth_mult=1.0)
    return v.EfficientNet([c(1, 3, 1, 32, 16, 1), c(6, 3, 2, 16, 24, 2), c(6, 5, 2, 24, 40, 2), c(6, 3, 2, 40, 64, 1)],
                          dropout=drop, stochastic_depth_prob=drop, num_classes=CLASSES, norm_layer=GN)

@arch("efficientnet_v2", size=64, dropout=True, source="torchvision EfficientNet (V2 blocks), stochastic depth")
def _(drop):
    from torchvision.models import efficientnet as v
    return v.EfficientNet([v.FusedMBConvConfig(1, 3, 1, 16, 16, 1), v.FusedMBConvConfig(4, 3, 2, 16, 24, 2),
                           v.MBConvConfig(4, 3, 2, 24, 32, 2)],
                          dropout=drop, stochastic_depth_prob=drop, num_classes=CLASSES, norm_layer=GN,
                          last_channel=64)

@arch("convnext", size=32, dropout=True, source="torchvision ConvNeXt (layer scale, stochastic depth)")
def _(drop):
    from torchvision.models import convnext as v
    return v.ConvNeXt([v.CNBlockConfig(16, 32, 2), v.CNBlockConfig(32, 64, 2), v.CNBlockConfig(64, None, 1)],
                      stochastic_depth_prob=drop, layer_scale=0.1, num_classes=CLASSES)

@arch("regnet", size=64, source="torchvision RegNet Y (SE)")
def _(drop):
    from torchvision.models import regnet as v
    p = v.BlockParams.from_init_params(depth=5, w_0=16, w_a=12.0, w_m=2.0, group_width=8, se_ratio=0.25)
    return v.RegNet(p, num_classes=CLASSES, stem_width=16, norm_layer=GN)

@arch("vgg", dropout=True, source="torchvision VGG")
def _(drop):
    from torchvision.models import vgg as v
    m = bare(v.VGG)
    m.features = v.make_layers([16, "M", 32, 32, "M", 32, "M"])
    m.avgpool = nn.AdaptiveAvgPool2d((3, 3))
    m.classifier = nn.Sequential(nn.Linear(32 * 9, 64), nn.ReLU(True), nn.Dropout(p=drop), nn.Linear(64, 64),
                                 nn.ReLU(True), nn.Dropout(p=drop), nn.Linear(64, CLASSES))
    return m

@arch("vgg_groupnorm", dropout=True, source="torchvision VGG make_layers(batch_norm)")
def _(drop):
    from torchvision.models import vgg as v
    m = bare(v.VGG)
    m.features = no_batch_norm(v.make_layers([16, "M", 32, "M", 32, "M"], batch_norm=True))
    m.avgpool = nn.AdaptiveAvgPool2d((2, 2))
    m.classifier = nn.Sequential(nn.Linear(32 * 4, 64), nn.ReLU(True), nn.Dropout(p=drop), nn.Linear(64, CLASSES))
    return m

@arch("alexnet", size=64, dropout=True, source="torchvision AlexNet")
def _(drop):
    m = bare(tv.AlexNet)
    m.features = nn.Sequential(
        nn.Conv2d(3, 16, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(48, 32, 3, padding=1), nn.ReLU(inplace=True))
    m.avgpool = nn.AdaptiveAvgPool2d((3, 3))
    m.classifier = nn.Sequential(nn.Dropout(p=drop), nn.Linear(32 * 9, 64), nn.ReLU(inplace=True), nn.Dropout(p=drop),
                                 nn.Linear(64, 64), nn.ReLU(inplace=True), nn.Linear(64, CLASSES))
    return m

@arch("swin", dropout=True, source="torchvision SwinTransformer (relative bias tables, shifted windows)")
def _(drop):
    return tv.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [4, 4], mlp_ratio=2.0, dropout=drop, attention_dropout=drop,
                              stochastic_depth_prob=drop, num_classes=CLASSES)

@arch("swin_v2", dropout=True, source="torchvision SwinTransformer V2 (log-spaced bias MLP, cosine attention)")
def _(drop):
    from torchvision.models import swin_transformer as v
    return v.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [4, 4], mlp_ratio=2.0, stochastic_depth_prob=drop,
                             num_classes=CLASSES, block=v.SwinTransformerBlockV2, downsample_layer=v.PatchMergingV2)

@arch("vit", dropout=True, source="torchvision VisionTransformer (nn.MultiheadAttention)")
def _(drop): return tv.VisionTransformer(32, 8, 2, 2, 32, 64, dropout=drop, attention_dropout=drop, num_classes=CLASSES)

@arch("maxvit", size=64, dropout=True, source="torchvision MaxVit (block + grid attention)")
def _(drop):
    from torchvision.models.maxvit import MaxVit
    return MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, stochastic_depth_prob=drop, norm_layer=GN, mlp_ratio=2,
                  num_classes=CLASSES)

@arch("fcn_segmentation", size=32, dropout=True, source="torchvision FCN head + IntermediateLayerGetter, averaged", script=False)
def _(drop):
    from torchvision.models.segmentation.fcn import FCN, FCNHead
    from torchvision.models._utils import IntermediateLayerGetter
    r = narrow_resnet(tv_resnet.BasicBlock, [1, 1, 1, 1], [8, 8, 16, 32])
    head = FCNHead(32, CLASSES)
    head[3].p = drop
    fcn = no_batch_norm(FCN(IntermediateLayerGetter(r, {"layer4": "out"}), head))
    class M(nn.Module):
        def __init__(self): super().__init__(); self.m = fcn
        def forward(self, x): return self.m(x)["out"].mean((2, 3))
    return M()

@arch("deeplab_v3", size=32, dropout=True, source="torchvision DeepLabHead (ASPP with image pooling), averaged", script=False)
def _(drop):
    from torchvision.models.segmentation import deeplabv3 as v
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 16, 3, 2, 1)
            self.aspp = v.ASPP(16, [2, 4], 16)
            self.aspp.project[3].p = drop
            self.head = nn.Conv2d(16, CLASSES, 1)
        def forward(self, x):
            y = self.head(self.aspp(F.relu(self.stem(x))))
            return F.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False).mean((2, 3))
    return no_batch_norm(M())

# ---------------------------------------------------------------- timm
import timm


def tm(name, cls_path, *args, size=32, dropout=True, bn=False, script=True, note="", post=None, **kw):
    """A timm class with reduced configuration; values that are the string 'drop' become the drop rate."""
    def build(drop):
        import importlib
        mod, cls = cls_path.rsplit(".", 1)
        c = getattr(importlib.import_module("timm.models." + mod), cls)
        def fill(v): return drop if isinstance(v, str) and v == "drop" else v
        m = c(*args, **{k: fill(v) for k, v in kw.items()}, num_classes=CLASSES)
        if post: m = post(m)
        return no_batch_norm(m)
    arch(name, size=size, dropout=dropout, source="timm " + cls_path, script=script, note=note)(build)


class Mean2(nn.Module):
    """DeiT distilled returns two logits in train mode."""
    def __init__(self, m): super().__init__(); self.m = m
    def forward(self, x):
        a, b = self.m.forward_head(self.m.forward_features(x), pre_logits=False), 0
        return (a[0] + a[1]) / 2 if isinstance(a, tuple) else a

V = dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2)
tm("timm_vit", "vision_transformer.VisionTransformer", **V, mlp_ratio=2, proj_drop_rate="drop", attn_drop_rate="drop", drop_path_rate="drop")
tm("timm_vit_registers_qknorm_layerscale", "vision_transformer.VisionTransformer", **V, mlp_ratio=2, reg_tokens=2, qk_norm=True, init_values=0.1, drop_path_rate="drop", class_token=True)
tm("timm_vit_gap", "vision_transformer.VisionTransformer", dropout=False, **V, mlp_ratio=2, global_pool="avg", class_token=False)
tm("timm_vit_map_pool", "vision_transformer.VisionTransformer", dropout=False, **V, mlp_ratio=2, global_pool="map", class_token=False, note="attention pooling with a latent query (SigLIP)")
tm("timm_deit_distilled", "deit.VisionTransformerDistilled", **V, mlp_ratio=2, drop_rate="drop", drop_path_rate="drop", post=Mean2, script=False, note="both heads averaged, as in train mode")
tm("timm_beit", "beit.Beit", **V, mlp_ratio=2, drop_path_rate="drop", use_rel_pos_bias=True, init_values=0.1, use_abs_pos_emb=False, head_init_scale=1.0)
tm("timm_beit_shared_bias", "beit.Beit", **V, mlp_ratio=2, drop_path_rate="drop", use_shared_rel_pos_bias=True, init_values=0.1, head_init_scale=1.0)
tm("timm_mixer", "mlp_mixer.MlpMixer", img_size=32, patch_size=8, num_blocks=2, embed_dim=32, drop_path_rate="drop")
tm("timm_gmlp", "mlp_mixer.MlpMixer", img_size=32, patch_size=8, num_blocks=2, embed_dim=32, mlp_ratio=2, block_layer=__import__("timm.models.mlp_mixer", fromlist=["x"]).SpatialGatingBlock, mlp_layer=__import__("timm.layers", fromlist=["x"]).GatedMlp, drop_path_rate="drop")
tm("timm_resmlp", "mlp_mixer.MlpMixer", img_size=32, patch_size=8, num_blocks=2, embed_dim=32, mlp_ratio=2, block_layer=partial(__import__("timm.models.mlp_mixer", fromlist=["x"]).ResBlock, init_values=1e-2), norm_layer=__import__("timm.models.mlp_mixer", fromlist=["x"]).Affine, drop_path_rate="drop")
tm("timm_convmixer", "convmixer.ConvMixer", dropout=False, dim=32, depth=2, kernel_size=5, patch_size=4)
tm("timm_resnetv2_weight_std", "resnetv2.ResNetV2", dropout=True, layers=[1, 1, 1], channels=(32, 32, 64), stem_chs=16, norm_layer=partial(__import__("timm.layers", fromlist=["x"]).GroupNormAct, num_groups=8), drop_path_rate="drop", note="StdConv2d (weight standardisation by F.batch_norm of the weight), GroupNormAct; timm BiT")
tm("timm_nfnet", "nfnet.NormFreeNet", size=64, dropout=True, cfg=__import__("timm.models.nfnet", fromlist=["x"]).NfCfg(depths=(1, 1, 1), channels=(16, 32, 64), stem_type="3x3", group_size=8, bottle_ratio=0.5, num_features=64, attn_layer="se", attn_kwargs=dict(rd_ratio=0.25), act_layer="silu", extra_conv=True, gamma_in_act=False, skipinit=True), drop_path_rate="drop", note="ScaledStdConv2d, skip-init gain")
tm("timm_xcit", "xcit.Xcit", img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2, drop_path_rate="drop", eta=0.1, bn=True)
tm("timm_cait", "cait.Cait", img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2, drop_path_rate="drop", init_values=0.1)
tm("timm_convit", "convit.ConVit", img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2, local_up_to_layer=1, drop_path_rate="drop")
tm("timm_pvt_v2", "pvt_v2.PyramidVisionTransformerV2", size=64, depths=(1, 1), embed_dims=(16, 32), num_heads=(1, 2), sr_ratios=(2, 1), mlp_ratios=(2, 2), drop_path_rate="drop")
tm("timm_poolformer", "metaformer.MetaFormer", depths=(1, 1), dims=(16, 32), drop_path_rate="drop", size=64)
tm("timm_coatnet", "maxxvit.MaxxVit", size=64, script=True, cfg=__import__("timm.models.maxxvit", fromlist=["x"]).MaxxVitCfg(embed_dim=(16, 32), depths=(1, 1), block_type=("C", "T"), stem_width=(8, 16), head_hidden_size=32, transformer_cfg=__import__("timm.models.maxxvit", fromlist=["x"]).MaxxVitTransformerCfg(dim_head=8)), img_size=64, drop_path_rate="drop")
tm("timm_focalnet", "focalnet.FocalNet", size=32, depths=(1, 1), embed_dim=16, focal_levels=(2, 2), focal_windows=(3, 3), drop_path_rate="drop")
tm("timm_davit", "davit.DaVit", size=64, depths=(1, 1), embed_dims=(16, 32), num_heads=(2, 4), window_size=4, drop_path_rate="drop")
tm("timm_eva_rope", "eva.Eva", img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2, use_rot_pos_emb=True, swiglu_mlp=True, scale_mlp=True, head_init_scale=1.0, drop_path_rate="drop", note="rotary embedding, SwiGLU")
tm("timm_hiera", "hiera.Hiera", size=64, script=True, img_size=(64, 64), embed_dim=16, num_heads=1, stages=(1, 1, 1), q_pool=2, mask_unit_size=(4, 4), mask_unit_attn=(True, True, False), drop_path_rate="drop")
tm("timm_crossvit", "crossvit.CrossVit", size=64, img_size=64, img_scale=(1.0, 0.5), patch_size=(8, 8), embed_dim=(16, 32), depth=((1, 1, 0),), num_heads=(2, 2), mlp_ratio=(2., 2., 1.), drop_path_rate="drop")
tm("timm_volo", "volo.VOLO", size=64, layers=(1, 1), img_size=64, patch_size=8, stem_hidden_dim=16, embed_dims=(16, 32), num_heads=(2, 2), mlp_ratio=2.0, downsamples=(True, False), outlook_attention=(True, False), post_layers=("ca",), use_aux_head=False, drop_path_rate="drop", note="outlook attention: unfold/fold")
tm("timm_convnext_v2_grn", "convnext.ConvNeXt", size=64, depths=(1, 1, 1, 1), dims=(16, 16, 32, 32), use_grn=True, ls_init_value=None, drop_path_rate="drop", note="global response normalisation")
tm("timm_ghostnet", "ghostnet.GhostNet", size=64, width=0.25, cfgs=[[[3, 16, 16, 0, 1]], [[3, 48, 24, 0, 2]], [[5, 72, 40, 0.25, 2]]], drop_rate="drop")
tm("timm_sknet", "resnet.ResNet", size=32, dropout=False, block=__import__("timm.models.sknet", fromlist=["x"]).SelectiveKernelBasic, layers=(1, 1, 1, 1), channels=(16, 16, 32, 32), block_args=dict(sk_kwargs=dict(rd_ratio=0.25, rd_divisor=4, split_input=True)), zero_init_last=False)
tm("timm_resnet_se_dropblock", "resnet.ResNet", size=32, block=__import__("timm.models.resnet", fromlist=["x"]).Bottleneck, layers=(1, 1, 1, 1), channels=(8, 16, 16, 32), stem_width=16, stem_type="deep", block_args=dict(attn_layer="se"), drop_block_rate="drop", drop_path_rate="drop", avg_down=True, zero_init_last=False)
tm("timm_resnet_antialias_eca", "resnet.ResNet", size=32, dropout=False, block=__import__("timm.models.resnet", fromlist=["x"]).BasicBlock, layers=(1, 1, 1, 1), channels=(8, 16, 16, 32), aa_layer=__import__("timm.layers", fromlist=["x"]).BlurPool2d, block_args=dict(attn_layer="eca"))
tm("timm_res2net", "resnet.ResNet", size=32, dropout=False, block=__import__("timm.models.res2net", fromlist=["x"]).Bottle2neck, layers=(1, 1, 1, 1), channels=(8, 16, 16, 32), base_width=26, block_args=dict(scale=4))
tm("timm_repvgg", "byobnet.ByobNet", size=32, dropout=False, cfg=__import__("timm.models.byobnet", fromlist=["x"]).ByoModelCfg(blocks=(__import__("timm.models.byobnet", fromlist=["x"]).ByoBlockCfg(type="rep", d=2, c=16, s=2), __import__("timm.models.byobnet", fromlist=["x"]).ByoBlockCfg(type="rep", d=1, c=32, s=2)), stem_type="rep", stem_chs=16))
tm("timm_mobileone_mobilevit", "byobnet.ByobNet", size=64, dropout=False, cfg=__import__("timm.models.byobnet", fromlist=["x"]).ByoModelCfg(blocks=(__import__("timm.models.byobnet", fromlist=["x"]).ByoBlockCfg(type="bottle", d=1, c=16, s=2, gs=1, br=2.0), (__import__("timm.models.byobnet", fromlist=["x"]).ByoBlockCfg(type="bottle", d=1, c=32, s=2, gs=1, br=2.0), __import__("timm.models.byobnet", fromlist=["x"]).ByoBlockCfg(type="mobilevit", d=1, c=32, s=1, block_kwargs=dict(transformer_dim=16, transformer_depth=1, patch_size=2, num_heads=2), gs=1))), stem_chs=16, stem_type="3x3", stem_pool="", act_layer="silu"))

# ---------------------------------------------------------------- Hugging Face
import transformers as hf
HFC = dict(vocab_size=VOCAB, num_labels=CLASSES, pad_token_id=0, use_cache=False)
ENC = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=40)


def hft(name, cls, cfg, attn=("eager", "sdpa"), random=True, wrap=None, note="", **kw):
    for a in attn:
        def build(drop, a=a):
            p = dict(kw)
            for k in list(p):
                if isinstance(p[k], str) and p[k] == "drop": p[k] = drop
            c = getattr(hf, cfg)(**{**HFC, **p})
            m = getattr(hf, cls)._from_config(c, attn_implementation=a) if a else getattr(hf, cls)(c)
            return (wrap or Pick)(m)
        arch(name + ("_" + a if a else ""), kind="tokens", dropout=random, script=False,
             source="transformers %s%s" % (cls, ", " + a if a else ""), note=note)(build)


def bloom_wrap(m):
    from transformers.models.bloom import modeling_bloom as b
    b.BloomGelu.forward = lambda self, x: b.bloom_gelu_forward(x)
    return Pick(m)


D = dict(hidden_dropout_prob="drop", attention_probs_dropout_prob="drop")
hft("bert", "BertForSequenceClassification", "BertConfig", **ENC, **D)
hft("roberta", "RobertaForSequenceClassification", "RobertaConfig", **ENC, **D)
hft("electra", "ElectraForSequenceClassification", "ElectraConfig", embedding_size=16, **ENC, **D)
hft("albert", "AlbertForSequenceClassification", "AlbertConfig", embedding_size=16, **ENC, **D, classifier_dropout_prob="drop", note="shared layers")
hft("distilbert", "DistilBertForSequenceClassification", "DistilBertConfig", dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=40, dropout="drop", attention_dropout="drop", seq_classif_dropout="drop")
hft("gpt2", "GPT2ForSequenceClassification", "GPT2Config", n_embd=32, n_layer=2, n_head=2, n_positions=40, resid_pdrop="drop", embd_pdrop="drop", attn_pdrop="drop", note="takes the last token that is not padding")
hft("gpt_neox", "GPTNeoXForSequenceClassification", "GPTNeoXConfig", **ENC, hidden_dropout="drop", attention_dropout="drop")
hft("gptj", "GPTJForSequenceClassification", "GPTJConfig", attn=("eager",), n_embd=32, n_layer=2, n_head=2, n_positions=40, rotary_dim=8, resid_pdrop="drop", embd_pdrop="drop", attn_pdrop="drop")
hft("opt", "OPTForSequenceClassification", "OPTConfig", hidden_size=32, num_hidden_layers=2, ffn_dim=64, num_attention_heads=2, max_position_embeddings=40, word_embed_proj_dim=32, dropout="drop", attention_dropout="drop")
hft("bloom", "BloomForSequenceClassification", "BloomConfig", attn=(None,), wrap=bloom_wrap, hidden_size=32, n_layer=2, n_head=2, hidden_dropout="drop", attention_dropout="drop", note="alibi; its GELU is a Python autograd function, which no file can hold: bloom_gelu_forward is called instead")
LL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, max_position_embeddings=40)
hft("llama", "LlamaForSequenceClassification", "LlamaConfig", random=False, **LL, note="RMSNorm, rotary, grouped-query attention, SwiGLU")
hft("mistral", "MistralForSequenceClassification", "MistralConfig", random=False, attn=("sdpa",), **LL, sliding_window=8)
hft("qwen2", "Qwen2ForSequenceClassification", "Qwen2Config", random=False, attn=("eager",), **LL)
hft("gemma", "GemmaForSequenceClassification", "GemmaConfig", random=False, attn=("eager",), **LL, head_dim=8)
hft("mixtral", "MixtralForSequenceClassification", "MixtralConfig", random=False, attn=("eager",), **LL, num_local_experts=4, num_experts_per_tok=2, note="mixture of experts: tokens of all examples are gathered by expert")
hft("t5_encoder", "T5EncoderModel", "T5Config", attn=(None,), wrap=lambda m: PoolHead(m, 32), d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, dropout_rate="drop", note="relative position buckets, mean pooled")
hft("bart_encoder", "BartModel", "BartConfig", attn=("eager",), wrap=lambda m: PoolHead(m.encoder, 32), d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=40, dropout="drop", attention_dropout="drop")
hft("deberta_v2", "DebertaV2ForSequenceClassification", "DebertaV2Config", attn=(None,), **ENC, **D, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8, pooler_hidden_size=32, note="disentangled attention; torch.jit.script functions inside")
hft("mpnet", "MPNetForSequenceClassification", "MPNetConfig", attn=(None,), **ENC, **D)
hft("fnet", "FNetForSequenceClassification", "FNetConfig", attn=(None,), hidden_size=32, num_hidden_layers=2, intermediate_size=64, max_position_embeddings=40, hidden_dropout_prob="drop", note="FFT over sequence and features")
hft("convbert", "ConvBertForSequenceClassification", "ConvBertConfig", attn=(None,), embedding_size=16, **ENC, **D)
hft("squeezebert", "SqueezeBertForSequenceClassification", "SqueezeBertConfig", attn=(None,), embedding_size=32, **ENC, **D, q_groups=2, k_groups=2, v_groups=2, post_attention_groups=1, intermediate_groups=2, output_groups=2)
hft("xlnet", "XLNetForSequenceClassification", "XLNetConfig", attn=(None,), d_model=32, n_layer=2, n_head=2, d_inner=64, dropout="drop", summary_last_dropout="drop", note="two-stream code, [T, B] layout inside")
hft("mamba", "MambaModel", "MambaConfig", attn=(None,), random=False, wrap=lambda m: PoolHead(m, 32), hidden_size=32, num_hidden_layers=1, state_size=4, note="state space, sequential scan")


def hfi(name, cls, cfg, dropout=True, note="", **kw):
    def build(drop):
        p = {k: (drop if isinstance(v, str) and v == "drop" else v) for k, v in kw.items()}
        m = getattr(hf, cls)(getattr(hf, cfg)(num_labels=CLASSES, **p))
        class M(nn.Module):
            def __init__(self): super().__init__(); self.m = m
            def forward(self, x): return self.m(pixel_values=x).logits
        return M()
    arch(name, dropout=dropout, script=False, source="transformers " + cls, note=note)(build)

hfi("hf_vit", "ViTForImageClassification", "ViTConfig", image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, hidden_dropout_prob="drop", attention_probs_dropout_prob="drop")
hfi("hf_dinov2", "Dinov2ForImageClassification", "Dinov2Config", image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2, drop_path_rate="drop", note="pos embedding interpolated only when the size differs")

# ---------------------------------------------------------------- plain torch.nn
S = "hand-written on torch.nn"


class WSConv(nn.Conv2d):
    def forward(self, x):
        w = self.weight
        w = (w - w.mean(dim=(1, 2, 3), keepdim=True)) / (w.var(dim=(1, 2, 3), keepdim=True, unbiased=False) + 1e-5).sqrt()
        return F.conv2d(x, w, self.bias, self.stride, self.padding, self.dilation, self.groups)


class WRNBlock(nn.Module):
    def __init__(self, i, o, s, p):
        super().__init__()
        self.n1, self.c1 = GN(i), WSConv(i, o, 3, s, 1, bias=False)
        self.n2, self.c2 = GN(o), WSConv(o, o, 3, 1, 1, bias=False)
        self.short = WSConv(i, o, 1, s) if i != o or s != 1 else nn.Identity()
        self.drop = nn.Dropout(p)
    def forward(self, x):
        h = F.relu(self.n1(x))
        return self.c2(self.drop(F.relu(self.n2(self.c1(h))))) + self.short(h)

@arch("wide_resnet_weight_std", dropout=True, source=S + " (WRN-10-2 of De et al.)")
def _(drop): return nn.Sequential(WSConv(3, 16, 3, 1, 1), WRNBlock(16, 32, 1, drop), WRNBlock(32, 32, 2, drop), WRNBlock(32, 64, 2, drop), GN(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


class UNet(nn.Module):
    def __init__(self, up):
        super().__init__()
        def block(i, o): return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), GN(o), nn.ReLU(inplace=True), nn.Conv2d(o, o, 3, padding=1), GN(o), nn.ReLU(inplace=True))
        self.d1, self.d2, self.mid = block(3, 16), block(16, 32), block(32, 32)
        self.u2 = nn.ConvTranspose2d(32, 32, 2, 2) if up == "transpose" else nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), nn.Conv2d(32, 32, 1))
        self.u1 = nn.ConvTranspose2d(32, 16, 2, 2) if up == "transpose" else nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(32, 16, 1))
        self.b2, self.b1, self.out = block(64, 32), block(32, 16), nn.Conv2d(16, CLASSES, 1)
        self.pool = nn.MaxPool2d(2)
    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        y = self.u2(self.mid(self.pool(b)))
        y = self.u1(self.b2(torch.cat([y, b], dim=1)))
        return self.out(self.b1(torch.cat([y, a], dim=1))).mean(dim=(2, 3))

@arch("unet_transpose", source=S)
def _(drop): return UNet("transpose")
@arch("unet_upsample", source=S)
def _(drop): return UNet("upsample")


class Rnn(nn.Module):
    def __init__(self, cls, drop, **kw):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 16, padding_idx=0)
        self.rnn = cls(16, 24, batch_first=True, **kw)
        self.drop = nn.Dropout(drop)
        self.out = nn.Linear(24 * (2 if kw.get("bidirectional") else 1), CLASSES)
    def forward(self, x):
        y, _ = self.rnn(self.emb(x))
        return self.out(self.drop(y[:, -1]))

@arch("lstm", "tokens", dropout=True, source=S + ", nn.LSTM")
def _(drop): return Rnn(nn.LSTM, drop)
@arch("lstm_bidirectional_2_layers", "tokens", dropout=True, source=S + ", nn.LSTM")
def _(drop): return Rnn(nn.LSTM, drop, bidirectional=True, num_layers=2, dropout=drop)
@arch("lstm_projected", "tokens", dropout=True, source=S + ", nn.LSTM(proj_size)")
def _(drop):
    m = Rnn(nn.LSTM, drop, proj_size=12)
    m.out = nn.Linear(12, CLASSES)
    return m
@arch("gru", "tokens", dropout=True, source=S + ", nn.GRU")
def _(drop): return Rnn(nn.GRU, drop)
@arch("rnn_tanh", "tokens", dropout=True, source=S + ", nn.RNN")
def _(drop): return Rnn(nn.RNN, drop)


class LstmCells(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(VOCAB, 16), nn.LSTMCell(16, 24), nn.Linear(24, CLASSES)
    def forward(self, x):
        e = self.emb(x)
        h = torch.zeros(x.size(0), 24, device=x.device)
        c = torch.zeros(x.size(0), 24, device=x.device)
        for t in range(x.size(1)):
            h, c = self.cell(e[:, t], (h, c))
        return self.out(h)

@arch("lstm_cells", "tokens", source=S + ", nn.LSTMCell loop")
def _(drop): return LstmCells()


class PackedLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 16, padding_idx=0)
        self.rnn, self.out = nn.LSTM(16, 24, batch_first=True), nn.Linear(24, CLASSES)
    def forward(self, x):
        lengths = (x != 0).sum(dim=1).clamp(min=1).cpu()
        p = nn.utils.rnn.pack_padded_sequence(self.emb(x), lengths, batch_first=True, enforce_sorted=False)
        _, state = self.rnn(p)
        return self.out(state[0][-1])

@arch("lstm_packed", "tokens", source=S + ", pack_padded_sequence", note="rows end in zeros (padding) of various lengths")
def _(drop): return PackedLstm()


class PackedMean(PackedLstm):
    def forward(self, x):
        lengths = (x != 0).sum(dim=1).clamp(min=1).cpu()
        p = nn.utils.rnn.pack_padded_sequence(self.emb(x), lengths, batch_first=True, enforce_sorted=False)
        y, n = nn.utils.rnn.pad_packed_sequence(self.rnn(p)[0], batch_first=True, total_length=x.size(1))
        return self.out(y.sum(1) / n.to(y).unsqueeze(1))

@arch("lstm_packed_mean", "tokens", source=S + ", pack + pad_packed_sequence", note="rows end in zeros (padding)")
def _(drop): return PackedMean()


@arch("weight_norm_conv", source=S + ", torch.nn.utils.weight_norm (hooks)")
def _(drop):
    w = torch.nn.utils.weight_norm
    return nn.Sequential(w(nn.Conv2d(3, 16, 3, 2, 1)), nn.ELU(), w(nn.Conv2d(16, 32, 3, 2, 1)), nn.ELU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), w(nn.Linear(128, CLASSES)))
@arch("weight_norm_parametrized", source=S + ", torch.nn.utils.parametrizations.weight_norm")
def _(drop):
    w = torch.nn.utils.parametrizations.weight_norm
    return nn.Sequential(w(nn.Conv2d(3, 16, 3, 2, 1)), nn.ELU(), w(nn.Conv2d(16, 32, 3, 2, 1)), nn.ELU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), w(nn.Linear(128, CLASSES)))
@arch("spectral_norm", source=S + ", spectral_norm hook", note="power iteration writes buffers from the weights (not from data) in train mode")
def _(drop):
    w = torch.nn.utils.spectral_norm
    return nn.Sequential(w(nn.Conv2d(3, 16, 3, 2, 1)), nn.LeakyReLU(0.1), w(nn.Conv2d(16, 16, 3, 2, 1)), nn.Flatten(), w(nn.Linear(1024, CLASSES)))
@arch("spectral_norm_parametrized", source=S + ", parametrizations.spectral_norm", note="power iteration writes buffers from the weights (not from data) in train mode")
def _(drop):
    w = torch.nn.utils.parametrizations.spectral_norm
    return nn.Sequential(w(nn.Conv2d(3, 16, 3, 2, 1)), nn.LeakyReLU(0.1), w(nn.Conv2d(16, 16, 3, 2, 1)), nn.Flatten(), w(nn.Linear(1024, CLASSES)))
@arch("orthogonal", source=S + ", parametrizations.orthogonal", note="Householder / matrix exponential of the weight")
def _(drop):
    return nn.Sequential(nn.Conv2d(3, 8, 3, 4, 1), nn.Tanh(), nn.Flatten(), nn.Linear(512, 16), nn.utils.parametrizations.orthogonal(nn.Linear(16, 16)), nn.Tanh(), nn.Linear(16, CLASSES))


class Lora(nn.Module):
    def __init__(self, i, o, r=4, freeze=True):
        super().__init__()
        self.base = nn.Linear(i, o)
        self.base.weight.requires_grad_(not freeze)
        self.a, self.b = nn.Parameter(torch.randn(r, i) * 0.1), nn.Parameter(torch.randn(o, r) * 0.1)
    def forward(self, x):
        return F.linear(x, self.base.weight + self.b @ self.a, self.base.bias)

class LoraBranch(Lora):
    def forward(self, x):
        return self.base(x) + (x @ self.a.t()) @ self.b.t() * 2.0

@arch("lora_merged", source=S + ", W + B A in forward, W frozen")
def _(drop): return nn.Sequential(nn.Flatten(), nn.AvgPool1d(6), Lora(512, 64), nn.GELU(), Lora(64, 64), nn.GELU(), Lora(64, CLASSES))
@arch("lora_branch_tokens", "tokens", dropout=True, source=S + ", x A' B' branch on tokens")
def _(drop): return nn.Sequential(nn.Embedding(VOCAB, 32), LoraBranch(32, 32), nn.Dropout(drop), nn.GELU(), LoraBranch(32, 32), nn.Flatten(), LoraBranch(512, CLASSES))


class ClipHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 16, 4, 4), nn.GELU(), nn.Flatten(), nn.Linear(1024, 32))
        self.text = nn.Parameter(torch.randn(CLASSES, 32))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
    def forward(self, x):
        a = F.normalize(self.enc(x), dim=-1)
        b = self.text / torch.linalg.vector_norm(self.text, dim=-1, keepdim=True)
        return self.logit_scale.exp() * a @ b.t()

@arch("clip_head", source=S + ", exp(logit_scale)")
def _(drop): return ClipHead()


class BilinearFusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1536, 16), nn.Linear(1536, 16)
        self.fuse = nn.Bilinear(16, 16, CLASSES)
    def forward(self, x):
        y = x.flatten(1)
        return self.fuse(torch.tanh(self.a(y[:, :1536])), torch.tanh(self.b(y[:, 1536:])))

@arch("bilinear_fusion", source=S + ", nn.Bilinear")
def _(drop): return BilinearFusion()

for mode in ("sum", "mean", "max"):
    @arch("embedding_bag_" + mode, "tokens", source=S + ", nn.EmbeddingBag(%s)" % mode)
    def _(drop, mode=mode): return nn.Sequential(nn.EmbeddingBag(VOCAB, 32, mode=mode), nn.ReLU(), nn.Linear(32, CLASSES))


class WeightedBag(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag, self.w, self.out = nn.EmbeddingBag(VOCAB, 32, mode="sum"), nn.Parameter(torch.ones(T)), nn.Linear(32, CLASSES)
    def forward(self, x):
        return self.out(torch.tanh(self.bag(x, None, self.w.expand(x.size(0), x.size(1)))))

@arch("embedding_bag_weighted", "tokens", source=S + ", per_sample_weights from a parameter")
def _(drop): return WeightedBag()


class Kan(nn.Module):
    """Kolmogorov-Arnold layer with Gaussian bases (FastKAN)."""
    def __init__(self, i, o, k=6):
        super().__init__()
        self.norm = nn.LayerNorm(i)
        self.register_buffer("grid", torch.linspace(-2, 2, k))
        self.spline = nn.Parameter(torch.randn(o, i, k) * 0.1)
        self.base = nn.Linear(i, o)
    def forward(self, x):
        b = torch.exp(-((self.norm(x).unsqueeze(-1) - self.grid) / 0.8) ** 2)
        return torch.einsum("bik,oik->bo", b, self.spline) + self.base(F.silu(x))

@arch("kan", source=S + ", FastKAN layers by einsum")
def _(drop): return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), Kan(48, 32), Kan(32, CLASSES))


class Film(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.cond = nn.Conv2d(3, 16, 3, 2, 1), nn.Linear(3, 32)
        self.se1, self.se2 = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.conv, self.norm, self.out = nn.Conv2d(16, 16, 3, 1, 1, groups=16), GN(16), nn.Linear(16, CLASSES)
    def forward(self, x):
        gamma, beta = self.cond(x.mean(dim=(2, 3))).chunk(2, dim=1)
        y = F.relu(self.norm(self.stem(x)) * (1 + gamma[:, :, None, None]) + beta[:, :, None, None])
        y = self.conv(y)
        s = torch.sigmoid(self.se2(F.relu(self.se1(y.mean(dim=(2, 3), keepdim=True)))))
        return self.out((y * s).amax(dim=(2, 3)))

@arch("film_se", source=S + ", FiLM + squeeze-excite")
def _(drop): return Film()


@arch("text_cnn", "tokens", dropout=True, source=S + " (Kim 2014)")
def _(drop):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(VOCAB, 16)
            self.convs = nn.ModuleList([nn.Conv1d(16, 16, k) for k in (2, 3, 4)])
            self.drop, self.out = nn.Dropout(drop), nn.Linear(48, CLASSES)
        def forward(self, x):
            e = self.emb(x).transpose(1, 2)
            ys: List[Tensor] = []
            for c in self.convs:
                ys.append(F.relu(c(e)).max(dim=2)[0])
            return self.out(self.drop(torch.cat(ys, 1)))
    return M()


class TorchEncoder(nn.Module):
    def __init__(self, drop, first, causal):
        super().__init__()
        self.emb, self.pos = nn.Embedding(VOCAB, 32), nn.Parameter(torch.randn(T, 32) * 0.1)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, drop, batch_first=True, norm_first=first), 2, enable_nested_tensor=False)
        self.out, self.causal = nn.Linear(32, CLASSES), causal
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(T))
    def forward(self, x):
        y = self.emb(x) + self.pos
        y = self.enc(y, mask=self.mask) if self.causal else self.enc(y, src_key_padding_mask=(x == 0))
        return self.out(y.mean(1))

@arch("nn_transformer_encoder", "tokens", dropout=True, source=S + ", nn.TransformerEncoder, padding mask")
def _(drop): return TorchEncoder(drop, False, False)
@arch("nn_transformer_encoder_causal_prenorm", "tokens", dropout=True, source=S + ", nn.TransformerEncoder, causal mask")
def _(drop): return TorchEncoder(drop, True, True)


class SeqFirst(nn.Module):
    """The layout [T, B, D] inside, as nn.MultiheadAttention's default wants it."""
    def __init__(self, drop):
        super().__init__()
        self.emb, self.att = nn.Embedding(VOCAB, 32), nn.MultiheadAttention(32, 4, dropout=drop)
        self.gru, self.out = nn.GRU(32, 24), nn.Linear(24, CLASSES)
    def forward(self, x):
        y = self.emb(x.t())
        y = y + self.att(y, y, y, need_weights=False)[0]
        return self.out(self.gru(y)[0][-1])

@arch("sequence_first_mha_gru", "tokens", dropout=True, source=S + ", [T, B, D] layout")
def _(drop): return SeqFirst(drop)


class Perceiver(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj, self.latent = nn.Linear(3, 32), nn.Parameter(torch.randn(4, 32))
        self.cross = nn.MultiheadAttention(32, 2, batch_first=True)
        self.norm, self.out = nn.LayerNorm(32), nn.Linear(32, CLASSES)
    def forward(self, x):
        k = self.proj(F.avg_pool2d(x, 4).flatten(2).transpose(1, 2))
        q = self.latent.unsqueeze(0).expand(x.size(0), -1, -1)
        return self.out(self.norm(self.cross(q, k, k, need_weights=False)[0]).mean(1))

@arch("perceiver", source=S + ", latent queries expanded")
def _(drop): return Perceiver()


class Stn(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 6))
        self.net = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, CLASSES))
    def forward(self, x):
        theta = self.loc(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3, device=x.device)
        grid = F.affine_grid(theta, list(x.size()), align_corners=False)
        return self.net(F.grid_sample(x, grid, align_corners=False))

@arch("spatial_transformer", source=S + ", affine_grid + grid_sample")
def _(drop): return Stn()


class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 8, 8)
        self.w = nn.Parameter(torch.randn(64, CLASSES, 8, 4) * 0.1)
    def squash(self, s: Tensor) -> Tensor:
        n = (s * s).sum(-1, keepdim=True)
        return s * n / (1 + n) / (n + 1e-8).sqrt()
    def forward(self, x):
        u = self.squash(self.conv(x).flatten(1).view(x.size(0), -1, 4))
        u = torch.cat([u, u], dim=-1)
        p = torch.einsum("bid,icde->bice", u, self.w)
        b = torch.zeros(p.size(0), p.size(1), p.size(2), device=x.device)
        v = torch.zeros(0)
        for i in range(3):
            v = self.squash((torch.softmax(b, 2).unsqueeze(-1) * p).sum(1))
            b = b + (p * v.unsqueeze(1)).sum(-1)
        return torch.linalg.vector_norm(v, dim=-1)

@arch("capsules", source=S + ", dynamic routing")
def _(drop): return Capsules()


class Moe(nn.Module):
    """Top-1 routing with a gather of rows per expert (index_select, index_add)."""
    def __init__(self):
        super().__init__()
        self.inp, self.gate = nn.Linear(192, 32), nn.Linear(32, 4)
        self.experts = nn.ModuleList([nn.Linear(32, 32) for _ in range(4)])
        self.out = nn.Linear(32, CLASSES)
    def forward(self, x):
        h = torch.relu(self.inp(F.avg_pool2d(x, 4).flatten(1)))
        p, k = torch.softmax(self.gate(h), 1).max(dim=1)
        y = torch.zeros_like(h)
        for i, e in enumerate(self.experts):
            rows = (k == i).nonzero().squeeze(1)
            y = y.index_add(0, rows, e(h.index_select(0, rows)) * p.index_select(0, rows).unsqueeze(1))
        return self.out(h + y)

@arch("moe_routed_rows", source=S + ", rows gathered per expert", note="rows move by values; honest")
def _(drop): return Moe()


class SoftMoe(Moe):
    def forward(self, x):
        h = torch.relu(self.inp(F.avg_pool2d(x, 4).flatten(1)))
        g = torch.softmax(self.gate(h), 1)
        ys: List[Tensor] = []
        for e in self.experts:
            ys.append(e(h))
        return self.out(torch.relu((torch.stack(ys, 1) * g.unsqueeze(2)).sum(1)))

@arch("moe_soft", source=S + ", dense mixture")
def _(drop): return SoftMoe()


class Prototypes(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.proto = nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Tanh(), nn.Flatten(), nn.Linear(512, 16)), nn.Parameter(torch.randn(CLASSES, 16))
    def forward(self, x): return -torch.cdist(self.enc(x), self.proto)

@arch("prototypes_cdist", source=S + ", cdist to class prototypes")
def _(drop): return Prototypes()


class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(48, 32), nn.Linear(32, 32), nn.Linear(32, CLASSES)
        self.p = nn.PReLU(32)
    def forward(self, x):
        y = torch.sin(3.0 * self.a(F.adaptive_avg_pool2d(x, 4).flatten(1)))
        return self.c(self.p(self.b(y)) + F.local_response_norm(y.unsqueeze(-1), 3).squeeze(-1))

@arch("siren_prelu_lrn", source=S)
def _(drop): return Siren()


@arch("mlp_dropout_variants", dropout=True, source=S + ", Dropout, AlphaDropout, FeatureAlphaDropout, Dropout2d")
def _(drop): return nn.Sequential(nn.Conv2d(3, 8, 4, 4), nn.Dropout2d(drop), nn.SELU(), nn.FeatureAlphaDropout(drop), nn.Flatten(), nn.Linear(512, 32), nn.SELU(), nn.AlphaDropout(drop), nn.Linear(32, CLASSES))

@arch("pixel_shuffle_instance_norm", source=S + ", PixelShuffle, InstanceNorm2d(affine), GLU, Hardswish")
def _(drop): return nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.InstanceNorm2d(32, affine=True), nn.GLU(1), nn.PixelShuffle(2), nn.Hardswish(), nn.PixelUnshuffle(2), nn.Conv2d(16, 16, 3, padding=1, padding_mode="reflect"), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(64, CLASSES))

@arch("conv1d_tcn", "tokens", source=S + ", dilated causal convolutions")
def _(drop):
    class B(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.c, self.d, self.n = nn.Conv1d(16, 16, 3, dilation=d), d, nn.GroupNorm(4, 16)
        def forward(self, x): return x + F.relu(self.n(self.c(F.pad(x, (2 * self.d, 0)))))
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.net, self.out = nn.Embedding(VOCAB, 16), nn.Sequential(B(1), B(2), B(4)), nn.Linear(16, CLASSES)
        def forward(self, x): return self.out(self.net(self.emb(x).transpose(1, 2))[:, :, -1])
    return M()

@arch("conv3d", source=S + ", Conv3d over the colour axis")
def _(drop):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.out = nn.Conv3d(1, 8, 3, stride=(1, 4, 4), padding=1), nn.Linear(8 * 3, CLASSES)
        def forward(self, x): return self.out(F.relu(self.c(x.unsqueeze(1))).mean((3, 4)).flatten(1))
    return M()

@arch("tied_embedding", "tokens", source=S + ", one weight as embedding and as output projection")
def _(drop):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.mid, self.out = nn.Embedding(VOCAB, 16), nn.Linear(16, 16), nn.Linear(VOCAB, CLASSES)
        def forward(self, x):
            h = torch.tanh(self.mid(self.emb(x).mean(1)))
            return self.out(F.log_softmax(F.linear(h, self.emb.weight), dim=-1))
    return M()

@arch("linear_regression_flat", source=S)
def _(drop): return nn.Sequential(nn.Flatten(), nn.Linear(3072, CLASSES))


# controls: these must be refused

@arch("control_resnet18_batchnorm", source="torchvision ResNet with its batch norms", note="control: must be refused")
def _(drop):
    m = narrow_resnet(tv_resnet.BasicBlock, [1, 1, 1, 1], [8, 8, 16, 16])
    m.bn1 = nn.BatchNorm2d(16)
    return m
@arch("control_stochastic_depth_batch", dropout=True, source=S + ", torchvision StochasticDepth(mode batch)", note="control: one coin for the whole batch")
def _(drop):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.d = nn.Linear(48, 32), nn.Linear(32, 32), nn.Linear(32, CLASSES), torchvision.ops.StochasticDepth(5 * drop, "batch")
        def forward(self, x):
            y = torch.relu(self.a(F.adaptive_avg_pool2d(x, 4).flatten(1)))
            return self.c(y + self.d(torch.relu(self.b(y))))
    return M()

# ---------------------------------------------------------------- making and checking

def sample(a, n, seed):
    g = torch.Generator().manual_seed(seed)
    if a["kind"] == "image":
        return torch.randn(n, a["channels"], a["size"], a["size"], generator=g)
    x = torch.randint(1, VOCAB, (n, T), generator=g)
    if "packed" in a["name"]:
        for i in range(n): x[i, 5 + int(torch.randint(0, T - 4, (1,), generator=g)):] = 0
    return x


def build(a, drop):
    torch.manual_seed(7)
    m = a["build"](drop).train()
    left = [k for k, c in m.named_modules() if isinstance(c, nn.modules.batchnorm._BatchNorm)]
    assert not left or a["name"].startswith("control_"), "batch norm left: %s" % left
    with torch.no_grad():  # heads that start at zero would hide everything behind them
        for p in m.parameters():
            if p.ndim >= 2 and p.numel() > 1 and not p.any(): p.normal_(0, 0.05)
    return m


def check(a, file, stochastic):
    """Loads the file and compares rows in batches of 1, 2 and 5 with rows alone."""
    x = sample(a, 5, 11)
    r = dict(loads=True, shapes_ok=True, baked_batch=False, errors=[])
    m = torch.jit.load(file)
    m.eval()
    outs = {}
    for n in (1, 2, 3, 5):
        try:
            with torch.no_grad(): y = m(x[:n].clone())
            outs[n] = y
            if list(y.shape) != [n, CLASSES]:
                r["shapes_ok"] = False
                r["errors"].append("batch %d: shape %s" % (n, list(y.shape)))
        except Exception as e:
            r["errors"].append("batch %d: %s" % (n, str(e).strip().splitlines()[-1][:150]))
    r["baked_batch"] = bool(r["errors"]) and 3 in outs
    if 3 not in outs: raise RuntimeError("does not run: " + r["errors"][-1])
    r["max_row_difference"] = None
    r["scale"] = None
    if 1 in outs and not stochastic:
        try:
            with torch.no_grad(): alone = torch.cat([m(x[i:i + 1].clone()) for i in range(5)])
            r["scale"] = float(alone.abs().max())
            r["row_spread"] = float((alone - alone.mean(0)).abs().max())
            r["finite"] = bool(alone.isfinite().all())
            r["max_row_difference"] = {n: float((outs[n] - alone[:n]).abs().max()) for n in outs if outs[n].shape == alone[:n].shape}
        except Exception as e:
            r["errors"].append("alone: " + str(e).strip().splitlines()[-1][:150])
    # backward in train mode on a batch of 3
    m.train()
    try:
        m.zero_grad()
        F.cross_entropy(m(x[:3].clone()), torch.tensor([0, 1, 2])).backward()
        ps = [p for p in m.parameters() if p.requires_grad]
        r["backward"] = True
        r["parameters_without_gradient"] = sum(p.grad is None for p in ps)
    except Exception as e:
        r["backward"] = False
        r["errors"].append("backward: " + str(e).strip().splitlines()[-1][:150])
    return r


def main():
    out, only = sys.argv[1], set(sys.argv[2:])
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "index.json")
    index = json.load(open(path)) if only and os.path.exists(path) else {"versions": {}, "files": [], "failures": []}
    index["versions"] = {"torch": torch.__version__, "torchvision": torchvision.__version__, "timm": timm.__version__, "transformers": hf.__version__}
    if only:
        index["files"] = [f for f in index["files"] if f["name"] not in only]
        index["failures"] = [f for f in index["failures"] if f["name"] not in only]
    print("%-42s %-12s %8s %9s %-6s %-9s %s" % ("name", "file", "params", "bytes", "baked", "rowdiff", "remarks"), flush=True)
    for a in REGISTRY:
        if only and a["name"] not in only: continue
        jobs = [("trace", 0.1 if a["dropout"] else 0.0, a["name"] + ".trace.pt")]
        if a["dropout"]: jobs.append(("trace", 0.0, a["name"] + ".nodrop.trace.pt"))
        jobs.append(("script", 0.1 if a["dropout"] else 0.0, a["name"] + ".script.pt"))
        for how, drop, file in jobs:
            full = os.path.join(out, file)
            try:
                m = build(a, drop)
                params = sum(p.numel() for p in m.parameters())
                if how == "trace":
                    s = torch.jit.trace(m, sample(a, 3, 5), check_trace=False)
                else:
                    s = torch.jit.script(m)
                torch.jit.save(s, full)
                r = check(a, full, stochastic=how == "trace" and drop > 0)
            except Exception as e:
                if os.path.exists(full): os.remove(full)
                text = [l for l in str(e).strip().splitlines() if l.strip()] or [repr(e)]
                index["failures"].append(dict(name=a["name"], how=how, file=file, error=(text[0] + " | " + text[-1])[:400]))
                if how == "trace" or a["script"]: print("%-42s %-12s FAILED: %s" % (a["name"], how, text[0][:150]), flush=True)
                continue
            index["files"].append(dict(
                name=a["name"], file=file, how=how, source=a["source"], note=a["note"], expect="refuse" if a["name"].startswith("control_") else "unsure" if "spectral" in a["name"] else "accept",
                input=dict(kind="image", shape=[a["channels"], a["size"], a["size"]]) if a["kind"] == "image" else dict(kind="tokens", shape=[T], vocabulary=VOCAB, smallest=1, padding=0),
                classes=CLASSES, parameters=params, bytes=os.path.getsize(full), made_in="train", example_batch=3 if how == "trace" else None,
                dropout=drop if a["dropout"] else None, stochastic=bool(drop), **r))
            d = r["max_row_difference"]
            print("%-42s %-12s %8d %9d %-6s %-9s %s" % (a["name"], file[len(a["name"]) + 1:-3], params, os.path.getsize(full), r["baked_batch"],
                  "%.1e" % max(d.values()) if d else "-", "; ".join(r["errors"])[:160]), flush=True)
            json.dump(index, open(path, "w"), indent=1)
    json.dump(index, open(path, "w"), indent=1)
    print(len(index["files"]), "files,", len({f["name"] for f in index["files"]}), "architectures")


if __name__ == "__main__":
    main()
