"""A collector that writes down what our listeners send, one envelope a line, and hands it
on to a real one where there is one."""

import gzip
import http.server
import json
import threading
import urllib.request


class Recording:
    """An HTTP server on loopback that appends every posted line to a file.

    `clean` rewrites each line. With `forward` each request goes on to that URL, and the sender gets its answer.
    """

    def __init__(self, path, clean, forward=None):
        self.clean, self.forward = clean, forward
        self.lines = self.accepted = 0
        self.file = open(path, "a", encoding="utf-8")
        self.lock = threading.Lock()
        recording = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer = recording.hand_on(self.path, self.headers, body)
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                count = recording.add(body.decode())
                self.answer(answer or json.dumps({"accepted": count, "duplicates": 0, "rejected": []}).encode())

            def answer(self, data):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def add(self, body):
        """Appends the lines of one request, whole or not at all."""
        lines = [line for line in body.splitlines() if line.strip()]
        with self.lock:
            self.file.write("".join(self.clean(line) + "\n" for line in lines))
            self.file.flush()
            self.lines += len(lines)
        return len(lines)

    def hand_on(self, path, headers, body):
        """Posts a request to the real collector; its answer, None where there is none."""
        if self.forward is None:
            return None
        kept = {k: v for k, v in headers.items() if k.lower() in ("content-type", "content-encoding")}
        request = urllib.request.Request(self.forward + path, body, kept)
        with urllib.request.urlopen(request, timeout=30) as answer:
            data = answer.read()
        with self.lock:
            self.accepted += json.loads(data)["accepted"]
        return data

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.file.close()
