"""RNNsearch as a PyTorch user would write it: modules of torch, and a loop over time."""

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks.peers import work
from benchmarks.peers.work import ATTENTION, DECODER, EMBEDDING, ENCODER


class Translator(nn.Module):
    def __init__(self, source: int, target: int) -> None:
        super().__init__()
        self.read = nn.Embedding(source, EMBEDDING, padding_idx=0)
        self.encoder = nn.GRU(EMBEDDING, ENCODER, batch_first=True, bidirectional=True)
        self.embed = nn.Embedding(target, EMBEDDING, padding_idx=0)
        self.begin = nn.Linear(2 * ENCODER, 2 * DECODER)
        self.key, self.query = nn.Linear(2 * ENCODER, ATTENTION), nn.Linear(DECODER, ATTENTION)
        self.score = nn.Linear(ATTENTION, 1, bias=False)
        self.cell = nn.LSTMCell(EMBEDDING + 2 * ENCODER, DECODER)
        self.out = nn.Linear(DECODER + 2 * ENCODER, EMBEDDING)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = source != 0
        packed = nn.utils.rnn.pack_padded_sequence(
            self.read(source), mask.sum(1), batch_first=True, enforce_sorted=False
        )
        values, _ = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], batch_first=True)
        h, c = torch.tanh(self.begin(values.mean(1))).chunk(2, 1)
        keys, words, outputs = self.key(values), self.embed(target), []
        for t in range(target.shape[1]):
            scores = self.score(torch.tanh(keys + self.query(h)[:, None]))[..., 0]
            weights = scores.masked_fill(~mask, -1e9).softmax(1)
            context = torch.bmm(weights[:, None], values)[:, 0]
            h, c = self.cell(torch.cat([words[:, t], context], 1), (h, c))
            outputs.append(torch.cat([h, context], 1))
        return F.linear(self.out(torch.stack(outputs, 1)) + words, self.embed.weight)


def main() -> None:
    given = work.given()
    model = Translator(given["source"], given["target"])
    optimiser = torch.optim.Adam(model.parameters(), lr=work.RATE)

    def step(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        source, target = batch
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(
            logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1
        )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), work.CLIP)
        optimiser.step()

    batches = [
        (torch.tensor(work.padded(sources)), torch.tensor(work.padded(targets)))
        for sources, targets in given["batches"]
    ]
    speed = work.training_speed(step, batches, given["tokens"])
    work.answer(training=speed, weights=sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
