"""Models built from code, each with records and a loss, as people use them."""
import warnings

import torch
import torch.nn.functional as F
from torch import nn

warnings.filterwarnings('ignore')


def images(n=3, channels=3, size=32, classes=4):
    return (torch.randn(n, channels, size, size), torch.arange(n) % classes)


def without_dropout(model):
    """The same model, computing the same in every call."""
    for module in model.modules():
        for name in ('p', 'drop_prob'):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model


def _classifier(model, inputs):
    return model, lambda x, y: F.cross_entropy(model(x), y), inputs


def _group_norm(name, **more):
    import torchvision
    norm = lambda channels: nn.GroupNorm(min(8, channels), channels)
    return getattr(torchvision.models, name)(num_classes=4, norm_layer=norm, **more)


def _texts(vocabulary=50, n=3, length=12):
    ids = torch.randint(3, vocabulary, (n, length))
    mask = torch.ones_like(ids)
    for i in range(n):
        mask[i, length - i * 3:] = 0
    return {'input_ids': ids.where(mask == 1, torch.ones_like(ids)), 'attention_mask': mask}


SMALL = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=64, max_position_embeddings=64, pad_token_id=1)


def _family(prefix, kind, more=None, attention='sdpa'):
    import transformers
    config = getattr(transformers, prefix + 'Config')(**{**SMALL, **(more or {})})
    config.num_labels = 4
    config._attn_implementation = attention
    name = {'GPT2ForCausalLM': 'GPT2LMHeadModel'}.get(f'{prefix}For{kind}', f'{prefix}For{kind}')
    return getattr(transformers, name)(config)


def _language(prefix, more=None, attention='sdpa', wrap=None):
    def make():
        model = _family(prefix, 'CausalLM', more, attention)
        model = wrap(model) if wrap else model
        batch = _texts()
        batch['labels'] = batch['input_ids'].where(batch['attention_mask'] == 1, -100)
        return model, lambda batch: model(**batch).loss, batch
    return make


def _sequence(prefix, more=None, attention='sdpa', wrap=None):
    def make():
        model = _family(prefix, 'SequenceClassification', more, attention)
        model = wrap(model) if wrap else model
        batch = dict(_texts(), labels=torch.tensor([0, 1, 2]))
        return model, lambda batch: model(**batch).loss, batch
    return make


def _vision(name):
    def make():
        return _classifier(_group_norm(name), images())
    return make


def _timm(name, size=32, **more):
    def make():
        import timm
        model = timm.create_model(name, pretrained=False, num_classes=4, **more)
        return _classifier(model, images(size=size))
    return make


def _layer(build, *shape, dtype=torch.float32, vocabulary=7):
    def make():
        layer = build()
        x = (torch.randint(0, vocabulary, (4, *shape)) if dtype == torch.int64
             else torch.randn(4, *shape))

        def loss(x):
            out = layer(x)
            out = out[0] if isinstance(out, tuple) else out
            out = out if out.is_floating_point() else out.float()
            return (out ** 2).mean() + out.sum() * 0.01
        return layer, loss, (x,)
    return make


def _lora(model):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(
        r=2, target_modules='all-linear', init_lora_weights=False, lora_dropout=0.0))


def _ia3(model):
    import peft
    names = ['query', 'value', 'dense']
    return peft.get_peft_model(model, peft.IA3Config(
        task_type='SEQ_CLS', target_modules=names, feedforward_modules=['dense']))


def _prompt(model):
    import peft
    return peft.get_peft_model(model, peft.PromptTuningConfig(
        task_type='CAUSAL_LM', num_virtual_tokens=3))


def _bitfit(model):
    for name, value in model.named_parameters():
        value.requires_grad_('bias' in name)
    return model


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.layer = getattr(nn, kind)(5, 6, num_layers=2, batch_first=True)
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        return self.out(self.layer(self.embedding(x))[0][:, -1])


def _recurrent(kind):
    def make():
        model = Recurrent(kind)
        return _classifier(model, (torch.randint(0, 7, (4, 9)), torch.arange(4)))
    return make


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 5)
        self.out = nn.Linear(5, 7, bias=False)
        self.out.weight = self.table.weight

    def forward(self, x):
        return self.out(self.table(x).tanh()).mean(1)


def _shared():
    return _classifier(Shared(), (torch.randint(0, 7, (4, 9)), torch.arange(4)))


def _encoder():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.table = nn.Embedding(7, 16)
            self.out = nn.Linear(16, 4)

        def forward(self, x, mask):
            return self.out(self.encoder(self.table(x), src_key_padding_mask=mask)[:, 0])
    model = Model()
    mask = torch.zeros(4, 9, dtype=torch.bool)
    mask[1, 6:] = True
    x = torch.randint(0, 7, (4, 9))
    return model, lambda x, m, y: F.cross_entropy(model(x, m), y), (x, mask, torch.arange(4))


GPT2 = dict(n_embd=32, n_layer=2, n_head=4, n_positions=64)
KV = dict(num_key_value_heads=2)

MODELS = {
    'vision resnet18': _vision('resnet18'),
    'vision resnet50': _vision('resnet50'),
    'vision wide_resnet50_2': _vision('wide_resnet50_2'),
    'vision resnext50_32x4d': _vision('resnext50_32x4d'),
    'vision mobilenet_v2': _vision('mobilenet_v2'),
    'vision mobilenet_v3_small': _vision('mobilenet_v3_small'),
    'timm vit_tiny': _timm('vit_tiny_patch16_224', img_size=32, patch_size=8, depth=2),
    'timm deit_tiny': _timm('deit_tiny_patch16_224', img_size=32, patch_size=8, depth=2),
    'timm mixer': _timm('mixer_s32_224', size=64, img_size=64),
    'timm convnext': _timm('convnext_atto', depths=(1, 1, 1, 1)),
    'timm swin': _timm('swin_tiny_patch4_window7_224', size=56, img_size=56, depths=(1, 1, 1)),
    'timm resmlp': _timm('resmlp_12_224', size=64, img_size=64),
    'timm nf_resnet': _timm('nf_resnet26'),
    'timm beit': _timm('beit_base_patch16_224', size=32, img_size=32, embed_dim=48, depth=2,
                       num_heads=4),
    'timm cait': _timm('cait_xxs24_224', size=32, img_size=32, depth=2),
    'timm xcit': _timm('xcit_nano_12_p16_224', size=32, img_size=32, depth=2),
    'gpt2': _language('GPT2', GPT2),
    'gpt2 eager': _language('GPT2', GPT2, 'eager'),
    'gpt-neo': _language('GPTNeo', dict(
        num_layers=2, num_heads=4, attention_types=[[['global', 'local'], 1]]), 'eager'),
    'gpt-neox': _language('GPTNeoX'),
    'gptj': _language('GPTJ', dict(GPT2, rotary_dim=4), 'eager'),
    'llama': _language('Llama', KV),
    'llama eager': _language('Llama', KV, 'eager'),
    'mistral': _language('Mistral', KV),
    'qwen2': _language('Qwen2', KV),
    'qwen3': _language('Qwen3', dict(KV, head_dim=8)),
    'gemma': _language('Gemma', dict(KV, head_dim=8)),
    'phi': _language('Phi', {}),
    'opt': _language('OPT', dict(ffn_dim=64, word_embed_proj_dim=32, dropout=0.0)),
    'bloom': _language('Bloom', dict(n_layer=2, n_head=4), 'eager'),
    'olmo': _language('Olmo', dict(KV, eos_token_id=2)),
    'stablelm': _language('StableLm', KV),
    'bert': _sequence('Bert'),
    'bert eager': _sequence('Bert', attention='eager'),
    'roberta': _sequence('Roberta'),
    'distilbert': _sequence('DistilBert', dict(dim=32, n_layers=2, n_heads=4, hidden_dim=64)),
    'albert': _sequence('Albert', dict(embedding_size=16)),
    'electra': _sequence('Electra', dict(embedding_size=16)),
    'deberta-v2': _sequence('DebertaV2', dict(problem_type='single_label_classification'),
                            'eager'),
    # Its own reading of the labels has a size that depends on them.
    'deberta-v2 of labels': _sequence('DebertaV2', attention='eager'),
    'mpnet': _sequence('MPNet', attention='eager'),
    'convbert': _sequence('ConvBert', dict(embedding_size=16), 'eager'),
    'squeezebert': _sequence('SqueezeBert', dict(embedding_size=32), 'eager'),
    'modernbert': _sequence('ModernBert', dict(reference_compile=False)),
    'lora gpt2': _language('GPT2', GPT2, wrap=_lora),
    'lora llama': _language('Llama', KV, wrap=_lora),
    'lora bert': _sequence('Bert', wrap=_lora),
    'ia3 bert': _sequence('Bert', wrap=_ia3),
    'prompt gpt2': _language('GPT2', GPT2, wrap=_prompt),
    'bitfit bert': _sequence('Bert', wrap=_bitfit),
    'nn.Linear': _layer(lambda: nn.Linear(5, 3), 5),
    'nn.Linear of rows': _layer(lambda: nn.Linear(5, 3), 6, 5),
    'nn.Conv1d': _layer(lambda: nn.Conv1d(4, 6, 3, padding=1, groups=2), 4, 9),
    'nn.Conv2d': _layer(lambda: nn.Conv2d(4, 6, 3, stride=2, dilation=2), 4, 11, 11),
    'nn.Conv3d': _layer(lambda: nn.Conv3d(2, 3, 3), 2, 5, 5, 5),
    'nn.ConvTranspose2d': _layer(lambda: nn.ConvTranspose2d(4, 3, 3, stride=2), 4, 5, 5),
    'nn.LayerNorm': _layer(lambda: nn.LayerNorm(7), 3, 7),
    'nn.GroupNorm': _layer(lambda: nn.GroupNorm(2, 4), 4, 5, 5),
    'nn.InstanceNorm2d': _layer(lambda: nn.InstanceNorm2d(4, affine=True), 4, 5, 5),
    'nn.RMSNorm': _layer(lambda: nn.RMSNorm(7), 3, 7),
    'nn.Embedding': _layer(lambda: nn.Embedding(7, 5), 9, dtype=torch.int64),
    'nn.EmbeddingBag': _layer(lambda: nn.EmbeddingBag(7, 5, mode='mean'), 9, dtype=torch.int64),
    'nn.PReLU': _layer(lambda: nn.PReLU(4), 4, 6),
    'nn.Bilinear': _layer(lambda: _Twice(nn.Bilinear(5, 5, 3)), 5),
    'nn.MultiheadAttention': _layer(lambda: _Self(nn.MultiheadAttention(8, 2, batch_first=True)), 6, 8),
    'nn.LSTM': _recurrent('LSTM'),
    'nn.GRU': _recurrent('GRU'),
    'nn.RNN': _recurrent('RNN'),
    'nn.TransformerEncoder': _encoder,
    'weight norm': _layer(lambda: torch.nn.utils.parametrizations.weight_norm(nn.Linear(5, 3)), 5),
    'shared table': _shared,
    'batch norm in evaluation': _layer(lambda: nn.BatchNorm2d(4).eval(), 4, 5, 5),
    'complex': _layer(lambda: _Fourier(), 8),
}


class _Twice(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x.tanh())


class _Self(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x, x, need_weights=False)


class _Fourier(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=8)
