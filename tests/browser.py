"""A headless Chromium, driven over its DevTools protocol with the standard library alone.

    with Browser(program) as browser:
        browser.open('file:///tmp/page.html')
        browser.evaluate('document.title')

Everything that the page says on its console, every error and every request is kept.
"""
import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome',
         'headless_shell']


def find_browser():
    """The path of an installed browser, or None."""
    named = os.environ.get('SORDINO_BROWSER')
    return named or next((path for path in map(shutil.which, NAMES) if path), None)


class WebSocket:
    """As much of RFC 6455 as a client of a browser on this machine needs."""

    def __init__(self, url, timeout):
        host, _, path = url.removeprefix('ws://').partition('/')
        name, _, port = host.partition(':')
        self.socket = socket.create_connection((name, int(port)), timeout=timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f'GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n'
            f'Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n'
            'Sec-WebSocket-Version: 13\r\n\r\n'.encode())
        self.rest = b''
        while b'\r\n\r\n' not in self.rest:
            self.rest += self._more()
        head, _, self.rest = self.rest.partition(b'\r\n\r\n')
        if b' 101 ' not in head.split(b'\r\n')[0]:
            raise ConnectionError(head.decode(errors='replace'))

    def _more(self):
        part = self.socket.recv(1 << 16)
        if not part:
            raise ConnectionError('the browser closed the connection')
        return part

    def _take(self, count):
        while len(self.rest) < count:
            self.rest += self._more()
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        size = len(data)
        head = b'\x81' + (bytes([0x80 | size]) if size < 126 else
                          b'\xfe' + struct.pack('>H', size) if size < 1 << 16 else
                          b'\xff' + struct.pack('>Q', size))
        self.socket.sendall(head + mask +
                            bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        """One whole text message."""
        message = b''
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size == 126:
                size = struct.unpack('>H', self._take(2))[0]
            elif size == 127:
                size = struct.unpack('>Q', self._take(8))[0]
            part = self._take(size)
            if first & 0x0F in (0, 1):
                message += part
                if first & 0x80:
                    return message.decode()
            elif first & 0x0F == 8:
                raise ConnectionError('the browser closed the connection')

    def close(self):
        self.socket.close()


class Browser:
    """One page in a browser of its own, with a profile that is removed at the end."""

    TIMEOUT = 120

    def __init__(self, program, width=1280, height=1000):
        self.profile = tempfile.TemporaryDirectory(prefix='sordino-browser-',
                                                   ignore_cleanup_errors=True)
        self.console, self.requests, self.answers, self.number = [], [], {}, 0
        self.socket = None
        self.process = subprocess.Popen(
            [program, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--no-first-run', '--disable-background-networking', '--disable-component-update',
             '--disable-sync', '--hide-scrollbars', '--force-device-scale-factor=1',
             f'--window-size={width},{height}', '--remote-debugging-port=0',
             f'--user-data-dir={self.profile.name}', 'about:blank'],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            self.socket = WebSocket(self._address(), self.TIMEOUT)
            for domain in ['Page', 'Runtime', 'Network', 'Log']:
                self.call(domain + '.enable')
            self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                      deviceScaleFactor=1, mobile=False)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.socket:
            self.socket.close()
        # The program may be a script that starts the browser: all of its group ends.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.profile.cleanup()

    def _address(self):
        """Of the page's own socket."""
        file = os.path.join(self.profile.name, 'DevToolsActivePort')
        end = time.monotonic() + self.TIMEOUT
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f'the browser ended with code {self.process.returncode}')
            try:
                with open(file, encoding='utf-8') as lines:
                    port = lines.readline().strip()
                with urllib.request.urlopen(f'http://127.0.0.1:{port}/json', timeout=10) as answer:
                    pages = [page for page in json.load(answer) if page['type'] == 'page']
                if pages:
                    return pages[0]['webSocketDebuggerUrl']
            except (OSError, ValueError):
                pass
            time.sleep(0.05)
        raise TimeoutError('the browser did not start')

    def _handle(self, message):
        method, params = message.get('method'), message.get('params', {})
        if 'id' in message:
            self.answers[message['id']] = message
        elif method == 'Runtime.consoleAPICalled':
            self.console.append(str([value.get('value') for value in params['args']]))
        elif method == 'Runtime.exceptionThrown':
            details = params['exceptionDetails']
            self.console.append(details.get('exception', {}).get('description', details['text']))
        elif method == 'Log.entryAdded':
            self.console.append(params['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])
        elif method == 'Page.loadEventFired':
            self.answers['load'] = message

    def _wait(self, key):
        while key not in self.answers:
            self._handle(json.loads(self.socket.receive()))
        return self.answers.pop(key)

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({'id': self.number, 'method': method, 'params': params}))
        answer = self._wait(self.number)
        if 'error' in answer:
            raise RuntimeError(f'{method}: {answer["error"]["message"]}')
        return answer['result']

    def open(self, url):
        """Loads a page; what was kept of the page before is forgotten."""
        self.console.clear()
        self.requests.clear()
        self.answers.pop('load', None)
        self.call('Page.navigate', url=url)
        self._wait('load')

    def evaluate(self, script):
        result = self.call('Runtime.evaluate', expression=script, returnByValue=True,
                           awaitPromise=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(result['exceptionDetails'].get('exception', {}).get('description'))
        return result['result'].get('value')

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y, count=1):
        self.mouse('mouseMoved', x, y)
        for number in range(1, count + 1):
            for kind in ['mousePressed', 'mouseReleased']:
                self.mouse(kind, x, y, button='left', clickCount=number)

    def drag(self, x0, y0, x1, y1):
        self.mouse('mouseMoved', x0, y0)
        self.mouse('mousePressed', x0, y0, button='left', buttons=1, clickCount=1)
        for part in (0.3, 0.6, 1.0):
            self.mouse('mouseMoved', x0 + part * (x1 - x0), y0 + part * (y1 - y0), button='left',
                       buttons=1)
        self.mouse('mouseReleased', x1, y1, button='left', clickCount=1)

    def press(self, name):
        """Tab, Enter, ArrowDown or ArrowRight."""
        code = {'Tab': 9, 'Enter': 13, 'ArrowRight': 39, 'ArrowDown': 40}[name]
        more = {'text': '\r'} if name == 'Enter' else {}
        self.call('Input.dispatchKeyEvent', type='keyDown' if more else 'rawKeyDown', key=name,
                  code=name, windowsVirtualKeyCode=code, **more)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=name, code=name,
                  windowsVirtualKeyCode=code)

    def screenshot(self, path=None):
        """The whole page as PNG bytes."""
        data = base64.b64decode(self.call('Page.captureScreenshot', format='png',
                                          captureBeyondViewport=True)['data'])
        if path:
            with open(path, 'wb') as file:
                file.write(data)
        return data
