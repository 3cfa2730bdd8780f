"""Writes a made-up census, the same one every time: who earns above 50K, from 14 mixed columns.

    python3 examples/make_census.py census.csv test.csv [ROWS]

The first table has 32,561 rows or ROWS, the test table 16,281. Nobody in them exists: every person is
drawn from the odds below. As in real tables some cells are '?', some text has blanks around it, and
the labels of the test table end in a point. examples/schemas/census.toml declares the columns.
"""
import math
import random
import sys

HEADER = ['age', 'workclass', 'weight', 'education', 'education-years', 'marital-status',
          'occupation', 'relationship', 'origin', 'sex', 'capital-gain', 'capital-loss',
          'hours-per-week', 'country', 'income']
# Value, share, effect on the log-odds of the higher income.
WORKCLASS = [('Private', 70, 0.0), ('Self-employed', 8, -0.3), ('Incorporated', 4, 0.6),
             ('Federal', 3, 0.5), ('State', 4, -0.1), ('Local', 6, 0.0), ('Unpaid', 1, -2.0)]
EDUCATION = [('Primary', 6, 4, -1.3), ('Some-secondary', 9, 8, -0.9), ('Secondary', 32, 9, -0.3),
             ('Some-college', 22, 10, 0.0), ('Associate', 8, 12, 0.3), ('Bachelor', 16, 13, 0.9),
             ('Master', 5, 14, 1.2), ('Professional', 1, 15, 1.8), ('Doctorate', 1, 16, 1.9)]
OCCUPATION = [('Craft', 13, 0.1), ('Professional', 13, 0.7), ('Executive', 13, 1.0),
              ('Clerical', 12, 0.0), ('Sales', 11, 0.3), ('Service', 10, -0.9),
              ('Machine', 6, -0.3), ('Transport', 5, -0.1), ('Cleaning', 4, -0.8),
              ('Farming', 3, -1.0), ('Technical', 3, 0.6), ('Protective', 2, 0.5),
              ('Household', 1, -2.0)]
ORIGIN = [('A', 85, 0.0), ('B', 10, -0.2), ('C', 3, 0.1), ('D', 1, -0.3), ('Other', 1, -0.3)]
COUNTRY = [('Home', 90, 0.0), ('North', 2, 0.2), ('South', 4, -0.7), ('East', 2, 0.1),
           ('West', 1, 0.0), ('Islands', 1, -0.3)]


def draw(rng, choices):
    return rng.choices(choices, [choice[1] for choice in choices])[0]


def household(rng, age, sex):
    """Marital status, relationship and their effect."""
    married = rng.random() < (0.06 if age < 23 else 0.35 if age < 30 else 0.56)
    if married:
        return 'Married', 'Husband' if sex == 'Male' else 'Wife', 2.1
    if age < 28 and rng.random() < 0.7:
        return 'Never-married', 'Own-child', -1.2
    status = rng.choices(['Never-married', 'Divorced', 'Separated', 'Widowed'],
                         [50 if age < 45 else 15, 30, 7, 3 if age < 60 else 30])[0]
    return status, rng.choices(['Not-in-family', 'Unmarried', 'Other-relative'], [60, 32, 8])[0], 0.0


def capital(rng, score):
    """Gains and losses, which most people do not have."""
    chance = 1 / (1 + math.exp(-score))
    if rng.random() < 0.04 + 0.16 * chance:
        return round(min(99999, rng.lognormvariate(7.8 + 1.6 * chance, 0.6))), 0
    return 0, round(rng.gauss(1870, 350)) if rng.random() < 0.03 + 0.07 * chance else 0


def person(rng):
    age = min(90, max(17, round(17 + rng.gammavariate(2.6, 8.3))))
    sex = 'Male' if rng.random() < 0.67 else 'Female'
    workclass, _, work = draw(rng, WORKCLASS)
    education, _, years, learned = draw(rng, EDUCATION)
    occupation, _, trade = draw(rng, OCCUPATION)
    origin, _, birth = draw(rng, ORIGIN)
    country, _, place = draw(rng, COUNTRY)
    marital, relationship, home = household(rng, age, sex)
    hours = min(99, max(1, round(rng.gauss(43 if sex == 'Male' else 37, 11))))
    score = (-3.4 + work + learned + trade + birth + place + home + (0.25 if sex == 'Male' else 0)
             + 0.035 * (hours - 40) + 0.9 - ((age - 50) / 22) ** 2)
    gain, loss = capital(rng, score)
    score += 2.5 * (gain > 5000) + 0.9 * (loss > 1800)
    income = rng.random() < 1 / (1 + math.exp(-1.3 * score))
    if rng.random() < 0.056:
        workclass = occupation = '?'
    if rng.random() < 0.018:
        country = '?'
    weight = round(rng.lognormvariate(12.05, 0.5))
    return [age, workclass, weight, education, years, marital, occupation, relationship, origin, sex,
            gain, loss, hours, country, '>50K' if income else '<=50K']


def write(path, rows, seed, ending):
    rng = random.Random(seed)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(', '.join(HEADER) + '\n')
        for _ in range(rows):
            file.write(', '.join(map(str, person(rng))) + ending + '\n')


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit('make_census.py: give the two files to write, and the number of rows of the first.')
    write(sys.argv[1], int(sys.argv[3]) if len(sys.argv) == 4 else 32_561, 1994, '')
    write(sys.argv[2], 16_281, 1995, '.')


if __name__ == '__main__':
    main()
