"""Convolutional networks of our own that the gallery does not have."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class BasicConv2d(nn.Module):
    """Convolution, norm, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    """Four branches side by side (Szegedy et al. 2014, arXiv:1409.4842, figure 2b)."""

    def __init__(self, inputs: int, a: int, b0: int, b: int, c0: int, c: int, d: int) -> None:
        super().__init__()
        self.branch1 = BasicConv2d(inputs, a, 1)
        self.branch2 = nn.Sequential(BasicConv2d(inputs, b0, 1), BasicConv2d(b0, b, 3, padding=1))
        self.branch3 = nn.Sequential(BasicConv2d(inputs, c0, 1), BasicConv2d(c0, c, 3, padding=1))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), BasicConv2d(inputs, d, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class GoogLeNet(nn.Module):
    """Table 1 of the paper, without the auxiliary classifiers, which do not run in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = BasicConv2d(3, 64, 7, 2, 3)
        self.maxpool1 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.conv2 = BasicConv2d(64, 64, 1)
        self.conv3 = BasicConv2d(64, 192, 3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.inception3a = Inception(192, 64, 96, 128, 16, 32, 32)
        self.inception3b = Inception(256, 128, 128, 192, 32, 96, 64)
        self.maxpool3 = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.inception4a = Inception(480, 192, 96, 208, 16, 48, 64)
        self.inception4b = Inception(512, 160, 112, 224, 24, 64, 64)
        self.inception4c = Inception(512, 128, 128, 256, 24, 64, 64)
        self.inception4d = Inception(512, 112, 144, 288, 32, 64, 64)
        self.inception4e = Inception(528, 256, 160, 320, 32, 128, 128)
        self.maxpool4 = nn.MaxPool2d(2, 2, ceil_mode=True)
        self.inception5a = Inception(832, 256, 160, 320, 32, 128, 128)
        self.inception5b = Inception(832, 384, 192, 384, 48, 128, 128)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(1024, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        x = self.inception4d(self.inception4c(self.inception4b(self.inception4a(x))))
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(x))))
        return self.fc(self.dropout(torch.flatten(self.avgpool(x), 1)))
