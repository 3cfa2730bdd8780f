"""Writes made-up reviews of restaurants, the same ones every time, a line each: label, tab, sentence.

    python3 examples/make_reviews.py reviews.tsv public.tsv [REVIEWS]

The first file has 4,000 reviews or REVIEWS, the second 1,000.
"""
import random
import sys

THINGS = ['soup', 'bread', 'fish', 'waiter', 'wine', 'cake', 'table', 'coffee', 'salad', 'music']
WORDS = {'good': ['lovely', 'fresh', 'friendly', 'perfect', 'warm', 'excellent', 'delicious', 'quick'],
         'bad': ['cold', 'rude', 'stale', 'awful', 'slow', 'burnt', 'dirty', 'loud']}
OPENINGS = ['we came on a sunday and', 'my first visit :', 'as always', 'to be honest', 'in short ,']
ENDINGS = ['we will be back', 'never again', 'so it goes', 'the bill was as expected', 'that is all']


def review(rng):
    label = rng.choice(sorted(WORDS))
    parts = []
    for _ in range(rng.randint(2, 4)):
        kind = label if rng.random() < 0.85 else 'good' if label == 'bad' else 'bad'
        parts.append(f'the {rng.choice(THINGS)} was {rng.choice(WORDS[kind])}')
    return f"{label}\t{rng.choice(OPENINGS)} {' and '.join(parts)} , {rng.choice(ENDINGS)}"


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit('make_reviews.py: give the two files to write, and the number of reviews of the first.')
    for seed, (path, count) in enumerate([
            (sys.argv[1], int(sys.argv[3]) if len(sys.argv) == 4 else 4000), (sys.argv[2], 1000)]):
        rng = random.Random(seed)
        with open(path, 'w', encoding='utf-8') as file:
            for _ in range(count):
                file.write(review(rng) + '\n')


if __name__ == '__main__':
    main()
