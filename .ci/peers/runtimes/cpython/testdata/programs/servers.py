# SPDX-License-Identifier: Apache-2.0
import http.server
import socketserver
import threading
import urllib.request

import truth


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        truth.end()


with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://127.0.0.1:%d/" % server.server_address[1])
