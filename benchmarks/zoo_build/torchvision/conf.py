"""All models of torchvision as a site, a page each: ``tox -e zoo``, or ``sphinx-build`` where torchvision is."""

project = "torchvision"
extensions = ["sphinx_fxgraph"]
html_theme = "furo"

_TRAINED_BACKBONE = ("rcnn", "retinanet", "fcos", "ssd", "fcn_", "deeplab", "lraspp")
"""In the names of models that would download the weights of a part."""

fxgraph_zoo = {
    "torchvision": {
        "folder": "models",
        "registry": "torchvision.models:list_models",
        "target": "torchvision.models.get_model('{{ name }}', weights=None"
        + "".join(f"{{% if '{part}' in name %}}, weights_backbone=None{{% endif %}}" for part in _TRAINED_BACKBONE)
        + "{% if 'googlenet' in name or 'inception' in name %}, init_weights=False{% endif %})",
        "options": {
            "*": {"inputs": "f32[1, 3, 224, 224]"},
            "*inception*": {"inputs": "f32[1, 3, 299, 299]"},
            "*rcnn*": {"inputs": "[f32[3, 800, 800]]"},
            "retinanet*": {"inputs": "[f32[3, 800, 800]]"},
            "fcos*": {"inputs": "[f32[3, 800, 800]]"},
            "ssd300*": {"inputs": "[f32[3, 300, 300]]"},
            "ssdlite320*": {"inputs": "[f32[3, 320, 320]]"},
            "raft*": {"inputs": "f32[1, 3, 128, 128], f32[1, 3, 128, 128]"},
            "*3d*": {"inputs": "f32[1, 3, 16, 112, 112]"},
            "mc3*": {"inputs": "f32[1, 3, 16, 112, 112]"},
            "r2plus1d*": {"inputs": "f32[1, 3, 16, 112, 112]"},
            "mvit*": {"inputs": "f32[1, 3, 16, 224, 224]"},
            "s3d": {"inputs": "f32[1, 3, 16, 224, 224]"},
            "swin3d*": {"inputs": "f32[1, 3, 16, 224, 224]"},
        },
    }
}
