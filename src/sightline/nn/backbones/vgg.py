"""VGG-16 and VGG-19 (Simonyan and Zisserman 2014), torchvision's names, without the last layer."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

# Convolutions of 3 x 3 per stage; each stage ends with a pooling that halves the map.
CONVOLUTIONS = {"vgg16": (2, 2, 3, 3, 3), "vgg19": (2, 2, 4, 4, 4)}
CHANNELS = (64, 128, 256, 512, 512)
TOP, SIDE = 4096, 7  # FC-4096, and the side of the map that it reads


class VGG(nn.Module):
    """Pictures (B, 3, S, S) to the last ReLU's map (stride 16) or its pooled form (stride 32).

    With `stages` 4 it ends below conv5, with the pooled map of conv4. With stride 0 it has the two
    fully connected layers that `top` needs.
    """

    def __init__(self, name: str, stride: int, stages: int = 5) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        self.conv5 = 0  # the number of its first layer
        for convolutions, channels in list(zip(CONVOLUTIONS[name], CHANNELS, strict=True))[:stages]:
            self.conv5 = len(layers)
            for _ in range(convolutions):
                layers += [nn.Conv2d(before, channels, 3, padding=1), nn.ReLU(inplace=True)]
                before = channels
            layers.append(nn.MaxPool2d(2))
        if stages == 5 and stride == 16:  # conv5's ReLU: 14 x 14 x 512 (Xu et al. §4.3)
            layers.pop()  # the last pooling
        self.features = nn.Sequential(*layers)
        self.dimension, self.stride = CHANNELS[-1], stride
        self.unused = ("classifier.",)  # what a published file has and this does not
        if stride == 0:
            self.dimension, self.unused = TOP, ("classifier.6.",)
            first, second = nn.Linear(CHANNELS[-1] * SIDE**2, TOP), nn.Linear(TOP, TOP)
            self.classifier = nn.Sequential(first, nn.ReLU(), nn.Dropout(), second, nn.ReLU())
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)  # type: ignore[arg-type]

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.features(images)  # (B, 512, h, w)
        return result

    def above(self, x: Tensor) -> Tensor:
        """From the pooled map of conv4, which is of stride 16, on."""
        result: Tensor = self.features[self.conv5 :](x)
        return result

    def top(self, x: Tensor) -> Tensor:
        """FC-4096, the layer below the classes, of the pooled map."""
        flat = F.adaptive_avg_pool2d(x, SIDE).flatten(1)
        result: Tensor = self.classifier(flat)  # (B, 4096)
        return result

    def side(self, size: int) -> int:
        """The map's side for a picture of `size`: pooling drops an odd last row."""
        return size // self.stride
