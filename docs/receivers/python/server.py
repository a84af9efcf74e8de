"""
A receiver: WEBHOOK_SECRET=whsec_… python3 server.py

It keeps the ids in memory and may lose work when it ends: otherwise insert a row with the id as its key into your database,
and process it in a worker. Python's HTTP server is for machines behind a proxy that limits connections.
"""

import os
import queue
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify_webhook import WebhookVerificationError, verify_webhook

MAX_BYTES = 1_000_000
MAX_IDS = 10_000
SECRETS = os.environ["WEBHOOK_SECRET"].split()  # several during a rotation, with spaces between them

accepted = queue.SimpleQueue()
known = {}
lock = threading.Lock()


def accept(delivery_id, payload):
    if payload["data"].get("test") is True:
        return
    with lock:
        if delivery_id in known:
            return
        known[delivery_id] = True
        if len(known) > MAX_IDS:
            del known[next(iter(known))]
    accepted.put((delivery_id, payload))


def process_accepted():
    while True:
        delivery_id, payload = accepted.get()
        try:
            print(payload["event"], delivery_id, flush=True)  # your work
        except Exception:
            # Allows a manual redelivery. There is no automatic retry, because the response was 2xx.
            with lock:
                known.pop(delivery_id, None)
            traceback.print_exc()


class Receiver(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BYTES:
            self.close_connection = True
            return self.respond(413 if length.isdigit() else 411)
        try:
            accept(*verify_webhook(self.rfile.read(int(length)), self.headers, SECRETS))
            self.respond(204)
        except WebhookVerificationError as error:
            self.respond(error.status, error.code)
        except Exception:
            # 5xx: the delivery is retried.
            traceback.print_exc()
            self.respond(500)

    def respond(self, status, text=""):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


threading.Thread(target=process_accepted, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4000"))), Receiver).serve_forever()
