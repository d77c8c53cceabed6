"""Starts a server of another project for a test, and ends it when its own standard input closes.

    serve.py nginx [N]  certificates of a CA made for this run, HTTP/1.1, HTTP/2, TLS; /big has N bytes
    serve.py proxy      two tinyproxy: one for everybody, one that asks for a password
    serve.py files DIR  Python's http.server
    serve.py nats FLOWLUA N
                        nats-server, and N nodes with a worker each that have joined it: m1, m2…

Prints `name=value` lines, then `ready` when the server accepts connections. Ports are free ones: when another
process takes one in between, the server is started again with others.
"""

import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

folder = tempfile.mkdtemp(prefix="flowlua-servers-")
processes = []


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    numbers = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return numbers


def write(name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def start(prepare, count):
    """Calls `prepare(ports)`, which gives command lines, and runs these until all ports accept."""
    for _ in range(5):
        numbers = free_ports(count)
        log = open(os.path.join(folder, "log"), "wb")
        processes[:] = [
            subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log) for words in prepare(numbers)
        ]
        until = time.monotonic() + 60
        while time.monotonic() < until and all(each.poll() is None for each in processes):
            if all(accepts(number) for number in numbers):
                return numbers
            time.sleep(0.005)
        stop()
    with open(os.path.join(folder, "log")) as file:
        sys.exit("no server could be started: " + file.read())


def stop():
    for each in processes:
        each.kill() if each.poll() is None else None
        each.wait()


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)


def certificates():
    """ca.pem signs server.pem (127.0.0.1 and localhost), wrong.pem (another name), expired.pem and client.pem."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-subj", "/CN=test CA", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem")
    names = {
        "server": "IP:127.0.0.1,DNS:localhost",
        "wrong": "DNS:elsewhere.example",
        "expired": "IP:127.0.0.1,DNS:localhost",
        "client": "DNS:client.example",
    }
    for name, alternatives in names.items():
        openssl("req", *key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        extension = write(name + ".ext", f"subjectAltName={alternatives}\n")
        days = "-1" if name == "expired" else "2"
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", days, "-extfile", extension]
        openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signing)


NGINX = """
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  client_max_body_size 0;
  keepalive_requests 1000000;
  keepalive_timeout 600;
  sendfile on;
  types {{ application/json json; }}
  default_type application/octet-stream;
  ssl_certificate {folder}/server.pem;
  ssl_certificate_key {folder}/server.key;
  server {{ listen 127.0.0.1:{http}; include {folder}/locations; }}
  server {{ listen 127.0.0.1:{https} ssl http2; http2_max_concurrent_streams 256; include {folder}/locations; }}
  server {{ listen 127.0.0.1:{https1} ssl; include {folder}/locations; }}
  server {{
    listen 127.0.0.1:{wrong} ssl; include {folder}/locations;
    ssl_certificate {folder}/wrong.pem; ssl_certificate_key {folder}/wrong.key;
  }}
  server {{
    listen 127.0.0.1:{expired} ssl; include {folder}/locations;
    ssl_certificate {folder}/expired.pem; ssl_certificate_key {folder}/expired.key;
  }}
  server {{
    listen 127.0.0.1:{client} ssl; include {folder}/locations;
    ssl_client_certificate {folder}/ca.pem; ssl_verify_client on;
  }}
}}
"""

# `/who` shows the connection, the number of the request on it, the protocol and the client's certificate.
LOCATIONS = """
root {folder}/files;
location = /who {{
  default_type text/plain;
  return 200 "$connection $connection_requests $server_protocol $ssl_client_s_dn\\n";
}}
location = /slow {{ limit_rate 20k; limit_rate_after 1k; try_files /big =404; }}
location /put/ {{ dav_methods PUT; create_full_put_path on; }}
location = /gzip {{ gzip on; gzip_types *; gzip_min_length 1; try_files /small =404; }}
"""


def reset_sessions():
    """Listens for TLS: each session is reset within its body. Returns the port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder + "/server.pem", folder + "/server.key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            session = context.wrap_socket(connection, server_side=True)
            session.recv(1 << 16)
            session.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart")
            session.close()
        except OSError:
            connection.close()

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def nginx(big=1 << 20):
    certificates()
    files = os.path.join(folder, "files")
    os.mkdir(files)
    write("files/small", "s" * 1024)
    # Bytes that aren't kept on the disk.
    with open(os.path.join(files, "big"), "wb") as file:
        file.truncate(int(big))
    os.chmod(folder, 0o755)
    write("locations", LOCATIONS.format(folder=folder))
    names = ["http", "https", "https1", "wrong", "expired", "client"]

    def prepare(numbers):
        config = write("nginx.conf", NGINX.format(folder=folder, **dict(zip(names, numbers))))
        return [["nginx", "-p", folder, "-e", folder + "/error.log", "-c", config]]

    found = dict(zip(names, start(prepare, len(names))))
    found["resetting"] = reset_sessions()
    for name in ("ca", "server", "wrong", "client"):
        found[name + "_pem"] = os.path.join(folder, name + ".pem")
        found[name + "_key"] = os.path.join(folder, name + ".key")
    return found


def proxy():
    common = "Listen 127.0.0.1\nTimeout 60\nMaxClients 100\nAllow 127.0.0.1\nLogLevel Warning\n"

    def prepare(numbers):
        open_proxy = write("open.conf", common + f'Port {numbers[0]}\nViaProxyName "open"\n')
        asking = write("asking.conf", common + f"Port {numbers[1]}\nBasicAuth user password\n")
        return [["tinyproxy", "-d", "-c", config] for config in (open_proxy, asking)]

    numbers = start(prepare, 2)
    return {"open": numbers[0], "asking": numbers[1]}


def files(path):
    def prepare(numbers):
        words = ["-m", "http.server", "--bind", "127.0.0.1", "--directory", path, str(numbers[0])]
        return [[sys.executable, *words]]

    return {"http": start(prepare, 1)[0]}


def nats(binary, nodes):
    def prepare(numbers):
        store = os.path.join(folder, "store")
        return [["nats-server", "-a", "127.0.0.1", "-p", str(numbers[0]), "-js", "-sd", store]]

    found = {"nats": start(prepare, 1)[0]}
    for number in range(1, int(nodes) + 1):
        log = os.path.join(folder, f"m{number}")
        words = [binary, "--join", f"nats://127.0.0.1:{found['nats']}", "--name", f"m{number}", "--workers", "1"]
        environment = dict(os.environ, XDG_CACHE_HOME=log + ".cache")
        with open(log, "wb") as output:
            node = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )
        processes.append(node)
        found[f"m{number}"] = node.pid
        until = time.monotonic() + 60
        while "joined" not in open(log).read():
            if node.poll() is not None or time.monotonic() > until:
                sys.exit("a node can't join: " + open(log).read())
            time.sleep(0.005)
    return found


def end(*_):
    stop()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def main():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    try:
        found = {"nginx": nginx, "proxy": proxy, "files": files, "nats": nats}[sys.argv[1]](*sys.argv[2:])
        for name, value in found.items():
            print(f"{name}={value}")
        print("ready", flush=True)
        while os.read(0, 4096):
            pass
    finally:
        stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
