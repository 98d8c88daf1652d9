"""A server of files for tests: file_server.py PORT FOLDER LOG [--tls CERT KEY] [--s3 KEY SECRET REGION].
It answers GET with ranges and If-Range, PUT and DELETE, writes a line for each GET to LOG, and, with
--s3, checks the signature (AWS Signature Version 4) of paths that begin with /private/; others can only
be read.  Files in FOLDER make it fail:
  .break  N: the next answer ends after N bytes (once)
  .stall  N: answers stop after N bytes for as long as the file is there
  .codes  the next answers, one number a line, instead of files
  .expired  the session token that has expired
  .lag    S: a new file is not found for S seconds
  .slow   S: an answer of more than 64 KiB takes S seconds
  .mixes  If-Range is ignored: the rest is of the version that is there"""
import hashlib
import hmac
import http.server
import os
import socket
import ssl
import sys
import threading
import time
import urllib.parse

port, folder, log = int(sys.argv[1]), sys.argv[2], sys.argv[3]
PRIVATE = sys.argv[sys.argv.index("--s3") + 1:][:3] if "--s3" in sys.argv else None
lock = threading.Lock()
born = {}  # path of a file: when it was put
TLS = sys.argv[sys.argv.index("--tls") + 1:][:2] if "--tls" in sys.argv else None


def control(name):
    """The text of a control file; None: it is not there."""
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        return None


def signature_fault(method, headers, path, secret):
    """Why Authorization is not what it has to be (the specification's four tasks); None: it is."""
    given = headers.get("Authorization", "")
    if not given.startswith("AWS4-HMAC-SHA256 Credential="):
        return "AccessDenied"
    fields = dict(f.strip().split("=", 1) for f in given[len("AWS4-HMAC-SHA256 "):].split(","))
    key, day, region, service, kind = fields["Credential"].split("/")
    if [key, region, service, kind] != [PRIVATE[0], PRIVATE[2], "s3", "aws4_request"]:
        return "InvalidAccessKeyId"
    names = fields["SignedHeaders"].split(";")
    if any(n not in names for n in ("host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token") if n in headers):
        return "SignatureDoesNotMatch"
    canonical = "\n".join([method, urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"), "",
                           *(f"{n}:{' '.join(headers[n].split())}" for n in names), "", fields["SignedHeaders"], headers["x-amz-content-sha256"]])
    scope = f"{day}/{region}/{service}/{kind}"
    text = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    sign = ("AWS4" + secret).encode()
    for part in (day, region, service, kind, text):
        sign = hmac.new(sign, part.encode(), hashlib.sha256).digest()
    return None if hmac.compare_digest(sign.hex(), fields["Signature"]) else "SignatureDoesNotMatch"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def refuse(self, code, reason=""):
        body = f"<?xml version='1.0'?><Error><Code>{reason}</Code><Message>no</Message></Error>".encode() if reason else b""
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def allowed(self, reads):
        """The file of the path; None: the request has been refused."""
        path = self.path.split("?")[0]
        with lock:
            codes = control(".codes")
            if codes:
                first, _, rest = codes.partition("\n")
                with open(os.path.join(folder, ".codes"), "w", encoding="ascii") as file:
                    file.write(rest)
                self.refuse(int(first), "SlowDown")
                return None
        private = PRIVATE and path.startswith("/private/")
        fault = signature_fault(self.command, self.headers, path, PRIVATE[1]) if private else None if reads else "AccessDenied"
        if fault:
            self.refuse(403, fault)
            return None
        if private and self.headers.get("x-amz-security-token", "-") == control(".expired"):
            self.refuse(400, "ExpiredToken")
            return None
        return os.path.join(folder, urllib.parse.unquote(path).lstrip("/"))

    def do_GET(self):
        span = self.headers.get("Range", "-")
        with open(log, "a", encoding="utf8") as file:
            file.write(f"{self.path.split('?')[0]} {span}\n")
        path = self.allowed(True)
        if path is None:
            return
        try:
            if time.monotonic() - born.get(path, 0) < float(control(".lag") or 0):
                raise FileNotFoundError
            with open(path, "rb") as file:
                body = file.read()
        except OSError:
            self.refuse(404, "NoSuchKey")
            return
        self.answer(body, span)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.allowed(False)
        if path is None:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = f"{path}.{threading.get_ident()}"
        with open(part, "wb") as file:
            file.write(body)
        if not os.path.exists(path):
            born[path] = time.monotonic()
        os.replace(part, path)
        self.refuse(200)

    def do_DELETE(self):
        path = self.allowed(False)
        if path is None:
            return
        try:
            os.unlink(path)
        except OSError:
            pass
        self.refuse(204)

    def answer(self, body, span):
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        valid = self.headers.get("If-Range", tag) == tag or control(".mixes") is not None
        start = int(span[len("bytes="):-1]) if span.startswith("bytes=") and valid else 0
        if start >= len(body):
            self.refuse(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        cut = control(".break")
        stall = control(".stall")
        slow = control(".slow")
        if cut:
            os.unlink(os.path.join(folder, ".break"))
            self.wfile.write(body[start:start + int(cut)])
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if stall:
            self.wfile.write(body[start:start + int(stall)])
            start += int(stall)
            while control(".stall"):
                time.sleep(0.05)
        if slow and len(body) - start > 65536:
            step = len(body) // 20 + 1
            for start in range(start, len(body) - step, step):
                self.wfile.write(body[start:start + step])
                time.sleep(float(slow) / 20)
            start += step
        self.wfile.write(body[start:])


http.server.ThreadingHTTPServer.allow_reuse_address = True
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
server.daemon_threads = True
if TLS:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*TLS)
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
