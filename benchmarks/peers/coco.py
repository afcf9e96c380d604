"""pycocoevalcap's metrics, with Java, of a thousand captions."""

from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

from benchmarks.data import data_path
from benchmarks.metrics import captions


def main() -> None:
    _, (hypotheses, references) = captions(data_path("cocoeval", "goldens.json.gz"))
    tokenizer = PTBTokenizer()
    written = tokenizer.tokenize({i: [{"caption": t}] for i, t in hypotheses.items()})
    right = tokenizer.tokenize({i: [{"caption": t} for t in ts] for i, ts in references.items()})
    for metric in (Bleu(4), Rouge(), Cider(), Meteor()):
        value, _ = metric.compute_score(right, written)
        print(type(metric).__name__, value)


if __name__ == "__main__":
    main()
