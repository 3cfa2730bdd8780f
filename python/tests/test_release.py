"""sordino.release: the statistics of the command, from tables in memory."""
import gzip
import math
import os
import signal
import subprocess
import sys
import threading

import pytest

import core_support
import sordino

ROWS = 400
TABLE = {
    'age': [20 + i * 7 % 61 + i / 7 for i in range(ROWS)],
    'stay': [i * i % 29 for i in range(ROWS)],
    'sick': [i % 3 == 0 for i in range(ROWS)],
    'ward': [('a', 'b, c', 'quoted "d"', 'two\nlines', '')[i % 5] for i in range(ROWS)],
    'patient': [f'p{i // 2}' for i in range(ROWS)],
}
ASKED = {'count': True, 'mean': 'age', 'sum': 'stay', 'variance': 'stay', 'histogram': 'ward',
         'categories': ['a', 'b, c', 'quoted "d"', 'two\nlines', ''], 'quantile': {'age': [0.25, 0.5]},
         'bounds': {'age': (0, 120), 'stay': (0, 30)}, 'epsilon': 3,
         'group_by': {'sick': [True, False]}, 'user': 'patient', 'rows_per_user': 1}

pytestmark = pytest.mark.filterwarnings('ignore:insecure_seed', 'ignore:WEAK')


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv('SORDINO_STATE', str(tmp_path / 'state'))


def _quoted(cell):
    if isinstance(cell, bool):
        return str(int(cell))
    return '"' + cell.replace('"', '""') + '"' if isinstance(cell, str) else repr(cell)


@pytest.fixture(name='csv')
def _csv(tmp_path):
    file = tmp_path / 'visits.csv'
    lines = [','.join(TABLE)]
    lines += [','.join(_quoted(cell) for cell in row) for row in zip(*TABLE.values())]
    file.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return file


def _dict():
    return dict(TABLE)


def _numpy():
    numpy = pytest.importorskip('numpy')
    return {name: numpy.array(column) for name, column in TABLE.items()}


def _pandas():
    return pytest.importorskip('pandas').DataFrame(TABLE)


def _categorical():
    table = _pandas()
    return table.astype({'ward': 'category', 'stay': 'Int64', 'sick': 'boolean'})


def _polars():
    return pytest.importorskip('polars').DataFrame(TABLE)


@pytest.mark.parametrize('table', [_dict, _numpy, _pandas, _categorical, _polars])
def test_a_table_and_its_file_give_the_same_bits(csv, table):
    of_file = sordino.release(csv, **ASKED, insecure_seed=7)
    assert sordino.release(table(), **ASKED, insecure_seed=7).rows == of_file.rows


def test_a_release_has_the_bits_of_the_command(csv):
    ours = sordino.release(csv, count=True, mean='age', histogram='stay', quantile={'age': 0.5},
                           bounds={'age': (0, 120), 'stay': (0, 30)}, bins=6, epsilon=2,
                           delta=1e-6, group_by={'sick': [1, 0]}, spend={'mean:age': 0.5},
                           user='patient', rows_per_user=2, confidence=0.9, insecure_seed=3)
    theirs = core_support.run_program(
        'release', csv, '--count', '--mean', 'age', '--histogram', 'stay', '--quantile', 'age:0.5',
        '--bounds', 'age=0,120', '--bounds', 'stay=0,30', '--bins', 6, '--epsilon', 2, '--delta',
        1e-6, '--group-by', 'sick=1,0', '--spend', 'mean:age=0.5', '--user', 'patient',
        '--rows-per-user', 2, '--confidence', 0.9, '--insecure-seed', 3)
    assert len(ours) == len(theirs['releases'])
    for one, other in zip(ours, theirs['releases']):
        assert one.statistic == other['statistic']
        assert list(one.group.values()) == [other['group']]
        assert (one.values if one.bins else one.value) == other['value']
        assert [list(ends) for ends in one.intervals] == (
            other['interval'] if one.bins else [other['interval']])
        assert (one.epsilon, one.noise_scale) == (other['epsilon'], other['noise_scale'])
    assert (ours.epsilon, ours.delta, ours.is_private) == (theirs['epsilon'], theirs['delta'], False)


def test_a_compressed_file_and_a_schema_are_read(csv, tmp_path):
    packed = tmp_path / 'visits.csv.gz'
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    schema = tmp_path / 'visits.toml'
    schema.write_text('[[column]]\nname = "age"\nkind = "numeric"\nlow = 0\nhigh = 120\n'
                      '[[column]]\nname = "ward"\nkind = "categorical"\nvalues = ["a", "b, c", "*"]\n')
    for table in (packed, _dict()):
        found = sordino.release(table, mean='age', group_by='ward', schema=schema, epsilon=1,
                                insecure_seed=1)
        assert [one.group for one in found] == [{'ward': 'a'}, {'ward': 'b, c'}, {'ward': '*'}]


@pytest.mark.parametrize('values', [
    [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 2 ** 53 - 1],
    [2 ** 53 + 2, -7, 0, 12345678901234567, 1, 2]])
def test_numbers_reach_the_statistics_without_a_change(values):
    numpy = pytest.importorskip('numpy')
    # A histogram whose edges are the numbers and their neighbours holds each in a bin of its own.
    numbers = sorted(float(value) for value in values)
    edges = sorted({edge for number in numbers
                    for edge in (number, min(math.nextafter(number, math.inf),
                                             sys.float_info.max * (1 - 1e-16)))})
    for column in (values, numpy.array(values)):
        found = sordino.release({'x': column}, histogram='x', bins=edges, epsilon=1e6,
                                insecure_seed=2)
        counts = dict(zip(edges, (round(value) for value in found.values)))
        assert all(counts[number] >= 1 for number in numbers if number in counts)
        assert sum(counts.values()) >= len(numbers) - 1


def test_missing_values_are_refused_or_left_out_as_declared():
    for table in ({'x': [1.0, None, 3.0] * 100}, {'x': [1.0, math.nan, 3.0] * 100},
                  {'x': _float_array([1.0, math.nan, 3.0] * 100)}):
        with pytest.raises(sordino.Error, match="its field 'x' is empty") as refused:
            sordino.release(table, mean='x', bounds=(0, 4), epsilon=1)
        assert '--' not in str(refused.value)
        found = sordino.release(table, mean='x', bounds=(0, 4), epsilon=1000, missing=[''])
        assert found.value == pytest.approx(2, abs=0.1)
        assert sordino.release(table, count=True, mean='x', bounds=(0, 4), epsilon=1000,
                               on_error='skip')[0].value == pytest.approx(200, abs=1)


def test_a_file_in_another_encoding_is_read_as_declared(tmp_path):
    file = tmp_path / 'cities.csv'
    file.write_bytes('city\nZürich\nBern\n'.encode('latin-1'))
    asked = {'histogram': 'city', 'categories': ['Zürich', 'Bern'], 'epsilon': 1000}
    with pytest.raises(sordino.Error, match='is not valid utf-8') as refused:
        sordino.release(file, **asked)
    assert 'Z' not in str(refused.value).replace(str(file), '')
    found = sordino.release(file, **asked, encoding='latin-1')
    assert found.values == pytest.approx([1, 1], abs=0.5)


def test_a_value_that_is_not_declared_is_refused_left_out_or_counted_in_the_rest():
    wards = {'ward': ['surgery', 'SECRET', 'surgery'] * 100}
    with pytest.raises(sordino.Error, match="'ward' holds a value that is not declared") as refused:
        sordino.release(wards, count=True, group_by={'ward': ['surgery']}, epsilon=1000)
    assert 'SECRET' not in str(refused.value) and '--' not in str(refused.value)
    for more, counts in (({'on_error': 'skip'}, [200]),
                         ({'group_by': {'ward': ['surgery', '*']}}, [200, 100])):
        found = sordino.release(wards, **{'count': True, 'group_by': {'ward': ['surgery']},
                                          'epsilon': 1000, **more})
        assert [one.value for one in found] == pytest.approx(counts, abs=1)


def test_polars_and_pandas_nulls_are_empty_cells():
    polars = pytest.importorskip('polars')
    pandas = pytest.importorskip('pandas')
    cells = [1, None, 3] * 100
    for table in (polars.DataFrame({'x': cells}), pandas.DataFrame({'x': cells}),
                  pandas.DataFrame({'x': pandas.array(cells, dtype='Int64')})):
        found = sordino.release(table, mean='x', bounds=(0, 4), epsilon=1000, missing=[''])
        assert found.value == pytest.approx(2, abs=0.1)


def _float_array(values):
    return pytest.importorskip('numpy').array(values)


def test_strided_small_and_big_types_are_read_right():
    numpy = pytest.importorskip('numpy')
    for kind in ('int8', 'uint16', 'int64', 'float32', 'float64', 'float16', '>i4', 'bool'):
        column = numpy.array([1, 0, 1, 1] * 100).astype(kind)[::2]
        assert sordino.release({'x': column}, sum='x', bounds=(0, 1), epsilon=1e4,
                               ).value == pytest.approx(200, abs=1)


def test_times_and_bytes_are_groups_by_their_text():
    numpy = pytest.importorskip('numpy')
    pandas = pytest.importorskip('pandas')
    days = ['2026-01-01', '2026-01-02'] * 100
    for column in (numpy.array(days, dtype='datetime64[D]'), numpy.array(days, dtype='S10'),
                   pandas.Series(days, dtype='string'),
                   pandas.Series(pandas.to_datetime(days)).dt.date):
        found = sordino.release({'day': column}, count=True, group_by={'day': ['2026-01-01', '*']},
                                epsilon=1000)
        assert found[0].value == pytest.approx(100, abs=1)


@pytest.mark.parametrize('asked, sentence', [
    ({'mean': 'age'}, 'needs declared bounds'),
    ({'mean': 'height', 'bounds': (0, 1)}, "no column 'height'"),
    ({}, 'nothing was asked for'),
    ({'mean': ['age', 'stay'], 'bounds': (0, 1)}, 'does not say which column'),
    ({'mean': 'age', 'bounds': {'stay': (0, 1)}}, 'no statistic that needs it'),
    ({'mean': 'age', 'bounds': 3}, 'a pair of numbers'),
    ({'count': True, 'user': 'patient'}, 'needs rows_per_user'),
    ({'count': True, 'rows_per_user': 2}, 'needs user'),
    ({'count': True, 'noise': 'gaussian'}, 'needs delta'),
    ({'count': True, 'noise': 'cauchy'}, 'cauchy'),
    ({'count': True, 'group_by': 'ward'}, 'does not declare the groups'),
    ({'count': True, 'group_by': {'ward': 'abc'}}, 'list of texts'),
    ({'histogram': 'age'}, 'needs bins or categories'),
    ({'histogram': 'age', 'bins': 5}, 'need its bounds'),
    ({'count': True, 'spend': {'mean:age': 1}}, 'not one statistic'),
    ({'count': True, 'ledger': ''}, 'ledger is empty'),
    ({'count': True, 'on_error': 'ignore'}, 'refuse or skip'),
    ({'count': True, 'encoding': 'latin-1'}, 'leave them out of a table'),
    ({'count': True, 'delimiter': ';'}, 'leave them out of a table')])
def test_a_request_that_makes_no_sense_is_an_error_in_one_sentence(asked, sentence):
    with pytest.raises(sordino.Error) as refused:
        sordino.release(_dict(), epsilon=1, **asked)
    assert sentence in str(refused.value)
    assert '--' not in str(refused.value) and '\n' not in str(refused.value)


@pytest.mark.parametrize('table', [{'age': [1, 2], 'stay': [1]}, {}, [1, 2], 7])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(sordino.Error):
        sordino.release(table, mean=['age', 'stay'], bounds={'age': (0, 1), 'stay': (0, 1)},
                        epsilon=1)


def test_a_column_that_is_there_twice_is_refused():
    pandas = pytest.importorskip('pandas')
    table = pandas.DataFrame([[1, 2]] * 10, columns=['x', 'x'])
    with pytest.raises(sordino.Error, match='more than once'):
        sordino.release(table, mean='x', bounds=(0, 3), epsilon=1)


def test_no_sentence_holds_a_cell_or_a_row_number():
    for cell in ('geheim', math.inf, None):
        with pytest.raises(sordino.Error) as refused:
            sordino.release({'x': [1, 2, cell]}, mean='x', bounds=(0, 3), epsilon=1)
        assert not any(word in str(refused.value) for word in ('geheim', 'inf ', 'line', '3'))


class _Unread(dict):
    """A table that nobody may look into."""

    def items(self):
        raise AssertionError('the table was read')


def test_a_charge_is_on_the_disk_before_the_release_and_refused_before_the_data_are_read(tmp_path):
    ledger = sordino.Ledger.init(tmp_path / 'visits.db', epsilon=1, delta=1e-5)
    found = sordino.release(_dict(), count=True, epsilon=0.7, ledger=ledger)
    assert ledger.used == pytest.approx(0.7)
    assert ledger.entries[1].words == 'release count' and ledger.entries[1].run == found.run
    assert ledger.total == found.event and 'head' in found.charged
    before = ledger.head
    with pytest.raises(sordino.Error) as refused:
        sordino.release(_Unread(), count=True, epsilon=0.5, ledger=ledger.file)
    assert str(refused.value).startswith('nothing was released: the release costs epsilon')
    assert '--' not in str(refused.value)
    assert ledger.head == before


def test_a_malformed_table_is_refused_before_the_charge(tmp_path):
    ledger = sordino.Ledger.init(tmp_path / 'visits.db', epsilon=1, delta=1e-5)
    for table in ({'x': [1, 'two']}, {'y': [1]}, {'x': [1], 'y': [1, 2]}):
        with pytest.raises(sordino.Error):
            sordino.release(table, mean='x', sum='y' if len(table) > 1 else (), epsilon=0.5,
                            bounds={'x': (0, 3), 'y': (0, 3)} if len(table) > 1 else (0, 3),
                            ledger=ledger)
    assert ledger.used == 0 and len(ledger.entries) == 1


def test_a_unit_that_the_ledger_does_not_protect_is_refused(tmp_path):
    ledger = sordino.Ledger.init(tmp_path / 'users.db', epsilon=1, delta=1e-5, unit='user')
    with pytest.raises(sordino.Error, match='user'):
        sordino.release(_dict(), count=True, epsilon=0.1, ledger=ledger)
    assert ledger.used == 0


def test_data_with_a_described_ledger_are_not_released_without_it(csv):
    ledger = sordino.Ledger.init(csv.parent / 'visits.db', epsilon=1, delta=1e-5)
    (csv.parent / 'visits.csv.sordino.toml').write_text('ledger = "visits.db"\n')
    sordino.release(csv, count=True, epsilon=0.25)
    assert ledger.used == pytest.approx(0.25)
    other = sordino.Ledger.init(csv.parent / 'other.db', epsilon=9, delta=1e-5)
    with pytest.raises(sordino.Error):
        sordino.release(csv, count=True, epsilon=0.1, ledger=other)
    assert other.used == 0


def test_a_dry_run_reads_and_charges_nothing_and_says_what_it_would(tmp_path):
    ledger = sordino.Ledger.init(tmp_path / 'visits.db', epsilon=1, delta=1e-5)
    found = sordino.release(_dict(), count=True, epsilon=0.5, ledger=ledger, dry_run=True)
    assert len(found) == 0 and found.event == sordino.Event('add-remove: ' + str(
        found.event).split(': ')[1])
    assert found.epsilon == pytest.approx(0.5, rel=1e-3) and '50.00%' in found.charged
    assert ledger.used == 0


def test_the_command_refuses_with_the_same_sentence(csv, tmp_path):
    sordino.Ledger.init(tmp_path / 'small.db', epsilon=0.1, delta=1e-5)
    theirs = core_support.refusal('release', csv, '--count', '--epsilon', 1, '--ledger',
                                  tmp_path / 'small.db')
    with pytest.raises(sordino.Error) as refused:
        sordino.release(csv, count=True, epsilon=1, ledger=tmp_path / 'small.db')
    assert str(refused.value) == theirs.replace(
        'give --whole if that is meant', 'give whole=True if that is meant')


def test_noise_without_a_seed_is_never_the_same():
    first, second = (sordino.release(_dict(), mean='age', bounds=(0, 120), epsilon=0.1)
                     for _ in range(2))
    assert first.is_private and first.value != second.value


def test_a_seed_is_warned_of_and_shown():
    with pytest.warns(UserWarning, match='not private'):
        found = sordino.release(_dict(), count=True, epsilon=1, insecure_seed=1)
    assert not found.is_private and 'NOT PRIVATE' in found._repr_html_()


def test_a_guarantee_that_protects_nobody_is_warned_of():
    with pytest.warns(UserWarning, match='WEAK'):
        sordino.release(_dict(), count=True, epsilon=100)


def test_a_release_is_shown_in_a_notebook_and_goes_into_a_frame():
    found = sordino.release(_dict(), histogram='ward', categories=['a', '<b>', '*'], epsilon=1)
    html = found._repr_html_()
    assert '&lt;b&gt;' in html and 'total: epsilon 1' in html
    assert [row['bin'] for row in found.rows] == ['a', '<b>', '*']
    with pytest.raises(sordino.Error, match='read values'):
        print(found.value)


@pytest.mark.skipif(os.name != 'posix', reason='signals')
def test_an_interrupt_stops_a_release_before_the_charge(tmp_path):
    pytest.importorskip('numpy')
    code = (
        'import threading, time, os, signal, sordino, numpy\n'
        f"ledger = sordino.Ledger.init({str(tmp_path / 'l.db')!r}, epsilon=1, delta=1e-5)\n"
        "table = {'x': numpy.arange(10_000_000) / 7}\n"
        'def stop():\n'
        '    time.sleep(0.1)\n'
        '    os.kill(os.getpid(), signal.SIGINT)\n'
        'try:\n'
        '    threading.Thread(target=stop).start()\n'
        "    sordino.release(table, mean='x', bounds=(0, 1e6), epsilon=0.5, ledger=ledger)\n"
        'except KeyboardInterrupt:\n'
        "    print('stopped', ledger.used)\n")
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True,
                            check=False, env={**os.environ, 'SORDINO_STATE': str(tmp_path / 's')})
    assert result.stdout.strip() == 'stopped 0.0', result.stderr


def test_other_threads_run_while_rows_are_read():
    turns = []
    done = threading.Event()

    def count():
        while not done.is_set():
            turns.append(None)
            done.wait(0.0005)

    numpy = pytest.importorskip('numpy')
    table = {'x': numpy.arange(1_000_000) / 7}
    thread = threading.Thread(target=count)
    thread.start()
    before = len(turns)
    sordino.release(table, mean='x', bounds=(0, 1e6), epsilon=1)
    seen = len(turns) - before
    done.set()
    thread.join()
    assert seen > 3


def test_signals_are_left_as_they_were():
    before = signal.getsignal(signal.SIGINT)
    sordino.release(_dict(), count=True, epsilon=1)
    assert signal.getsignal(signal.SIGINT) is before
