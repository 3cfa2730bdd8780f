"""`sordino report RUN --watch` by real requests: report_watch_test.py SORDINO"""
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

SORDINO = sys.argv.pop(1)


class WatchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name) / 'run'
        self.run_folder.mkdir()
        (self.run_folder / 'config.toml').write_text('[privacy]\ndelta = 1e-05\n')
        (self.run_folder / 'event.txt').write_text('add-remove: gaussian(4)\n')
        self.metric(10)
        self.server = subprocess.Popen([SORDINO, 'report', self.run_folder, '--watch'],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.address = urllib.parse.urlsplit(self.server.stdout.readline().strip())

    def end(self):
        self.server.kill()
        self.server.communicate()

    def metric(self, step):
        with open(self.run_folder / 'metrics.jsonl', 'a', encoding='utf-8') as file:
            file.write(json.dumps({'private': True, 'step': step, 'epsilon': 1.0}) + '\n')

    def ask(self, path, method='GET'):
        connection = http.client.HTTPConnection('127.0.0.1', self.address.port, timeout=60)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def steps(self):
        answer, body = self.ask(self.address.path)
        self.assertEqual(answer.status, 200)
        data = re.search(r'id="data">(.*?)</script>', body, re.DOTALL).group(1)
        return [point['step'] for point in json.loads(data)['runs'][0]['points']]

    def test_the_page_follows_the_run(self):
        self.assertEqual(self.steps(), [10])
        self.metric(20)
        self.assertEqual(self.steps(), [10, 20])
        answer, body = self.ask(self.address.path)
        self.assertEqual(answer.getheader('Cache-Control'), 'no-store')
        self.assertEqual(answer.getheader('Referrer-Policy'), 'no-referrer')
        self.assertIn("connect-src 'self'", body)

    def test_only_its_address_is_answered(self):
        self.assertRegex(self.address.path, r'^/[0-9a-f]{32}/$')
        token = self.address.path.strip('/')
        wrong = token[:-1] + ('0' if token[-1] != '0' else '1')
        for path in ['/', f'/{wrong}/', f'/{token}', f'/{token}/config.toml', f'/{token}/../',
                     f'/{token}/?x=1', '/etc/passwd', f'/{token.upper()}x/', '/favicon.ico']:
            answer, body = self.ask(path)
            self.assertEqual(answer.status, 404, path)
            self.assertNotIn('delta', body)
        self.assertEqual(self.ask(self.address.path, 'POST')[0].status, 405)
        self.assertEqual(self.ask('/', 'POST')[0].status, 404)

    def test_every_run_of_it_has_another_address(self):
        first = self.address.path
        self.end()
        self.server = subprocess.Popen([SORDINO, 'report', self.run_folder, '--watch'],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertNotEqual(urllib.parse.urlsplit(self.server.stdout.readline()).path, first)

    def test_it_listens_on_the_loopback_only(self):
        listening = [line.split() for line in
                     pathlib.Path('/proc/net/tcp').read_text().splitlines()[1:]]
        port = f'{self.address.port:04X}'
        places = {fields[1] for fields in listening
                  if fields[1].endswith(':' + port) and fields[3] == '0A'}
        self.assertEqual(places, {f'0100007F:{port}'})

    def test_bad_requests_do_not_end_it(self):
        for text in [b'', b'\r\n\r\n', b'GET\r\n\r\n', b'\x00\xff' * 9000, b'GET / HTTP/1.1\r\n']:
            with socket.create_connection(('127.0.0.1', self.address.port), timeout=60) as client:
                try:
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
                    client.recv(4096)
                except OSError:
                    pass  # it may be gone already
        self.assertEqual(self.steps(), [10])

    def test_slow_clients_keep_nobody_waiting(self):
        silent = [socket.create_connection(('127.0.0.1', self.address.port)) for _ in range(20)]
        for client in silent:
            self.addCleanup(client.close)
            client.sendall(b'GET /')  # and no more
        started = time.monotonic()
        self.assertEqual(self.steps(), [10])
        self.assertLess(time.monotonic() - started, 1.5)
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(timeout=5), 130)

    def test_a_folder_that_breaks_is_told_and_comes_back(self):
        (self.run_folder / 'event.txt').write_text('add-remove: nothing at all(')
        answer, body = self.ask(self.address.path)
        self.assertEqual(answer.status, 500)
        self.assertIn('event.txt', body)
        (self.run_folder / 'event.txt').write_text('add-remove: gaussian(4)\n')
        self.assertEqual(self.steps(), [10])

    def test_a_signal_ends_it(self):
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(timeout=60), 130)

    def test_a_port_that_is_taken_is_refused(self):
        result = subprocess.run(
            [SORDINO, 'report', self.run_folder, '--watch', '--port', str(self.address.port)],
            capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn('give another --port', result.stderr)

    def test_a_port_that_is_none_is_refused_before_anything_is_written(self):
        page = self.run_folder.parent / 'page.html'
        for port in ['65536', '-1', '1.5', 'http', '99999999999999999999']:
            result = subprocess.run(
                [SORDINO, 'report', self.run_folder, '--out', page, '--watch', '--port', port],
                capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 2, port)
            self.assertIn('--port', result.stderr)
            self.assertFalse(page.exists())


if __name__ == '__main__':
    unittest.main()
