// Two servers: one as it comes, the other with the lenient parser and room for long heads.
const fs = require("fs");
const http = require("http");

const [directory, port, lenientPort] = process.argv.slice(2);

const ports = new WeakMap();

function escaped(text) {
    return text.replace(/[^!-~]|\\/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0"));
}

function serve(name, port, options) {
    const log = fs.openSync(`${directory}/${name}.log`, "a");
    const server = http.createServer(options, (request, response) => {
        const path = request.url.split(/[?#]/)[0];
        // 0: a socket that was reset does not tell its port any more.
        fs.writeSync(log, [ports.get(request.socket) || 0, request.method, escaped(path), escaped(request.url)].join("\t") + "\n");
        request.resume();
        request.on("end", () => {
            if (path === "/204" || path === "/304")
                response.writeHead(Number(path.slice(1)));
            else
                response.writeHead(200, {"Content-Length": 7});
            response.end(path === "/204" || path === "/304" || request.method === "HEAD" ? undefined : "served\n");
        });
    });
    server.on("connection", (socket) => ports.set(socket, socket.remotePort));
    server.listen(Number(port), "127.0.0.1", 4096);
}

serve("strict", port, {});
serve("lenient", lenientPort, {insecureHTTPParser: true, maxHeaderSize: 1 << 20, requireHostHeader: false});
process.on("SIGTERM", () => process.exit(0));
