"""Writes the hospital visits that the examples use, the same ones every time:

    python3 examples/make_visits.py visits.csv [ROWS]
"""
import random
import sys

WARDS = ['cardiology', 'maternity', 'oncology', 'surgery']


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit('make_visits.py: give the file to write, and the number of rows if not 10000.')
    rows = int(sys.argv[2]) if len(sys.argv) == 3 else 10_000
    rng = random.Random(2024)
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        file.write('patient,ward,age,stay\n')
        for _ in range(rows):
            patient = rng.randrange(max(1, rows * 6 // 10))
            ward = WARDS[min(3, int(rng.expovariate(0.9)))]
            age = min(100, max(0, round(rng.gauss(31 if ward == 'maternity' else 57, 14))))
            stay = min(30.0, 0.5 + rng.expovariate(0.25))
            file.write(f'p{patient:05d},{ward},{age},{stay:.1f}\n')


if __name__ == '__main__':
    main()
