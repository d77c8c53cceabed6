---@meta flow.http

---HTTP requests: `flow.http` or `require "flow.http"`. It is a function, too: `flow.http(url)`,
---`flow.http { url = …, … }` or `flow.http(url, { … })` starts a request and returns its task.
---
---The task succeeds with the response. It fails with an error of kind `http` for a status from 400 on, of
---kind `network` without a whole response, or of kind `timeout`. Requests at the same time share connections.
---In an op, each response is a line of the log. Values of the query, users, passwords and secrets appear
---nowhere. Needs Debian's package `libcurl4`, which is opened at the first request.
---@class flow.HTTP
---@overload fun(request: string|flow.HTTPRequest, options?: flow.HTTPRequest): flow.HTTPTask
local http = {}

---A request. At most one of `json`, `body`, `form` (with or without `files`) and `upload` is its body.
---@class flow.HTTPRequest
---@field url string? The URL, with `http:` or `https:`; for a client, a path after its `base`.
---@field method string? The method; `GET` without it, or `POST` with a body.
---@field query table<string, any>? Additions to the query of the URL: strings, numbers, booleans, secrets and lists of them, which have their name for each element.
---@field headers table<string, any>? Lines of the header. One with a secret, or the text of one, is sent to no other server, when a response redirects there.
---@field json any A value whose JSON is the body.
---@field body string|flow.Secret|nil The body.
---@field form table<string, any>? Fields of a form, in the form of `query`.
---@field files table<string, any>? Files of a form, which is sent in parts: the bytes of a file, or `{ path =, type =, name = }` for one that is read while it is sent, or `{ body =, type =, name = }`; or a list of these.
---@field upload string|{ path: string, from: integer?, size: integer? }|nil The path of a file that is sent while it is read; or a part of it: `from` is the number of bytes before it, 0 by default, and without `size` it is all that follows.
---@field auth string|flow.Secret|{ user: string, password: string|flow.Secret }|nil A bearer token, or a user and a password.
---@field timeout number? The most seconds for everything, from when the request is sent; no limit without it.
---@field connect_timeout number? The most seconds until there is a connection; 10 without it.
---@field idle_timeout number? The most seconds in which no byte moves; 60 without it.
---@field check boolean? With `false`, a status from 400 on is no failure: see `ok` of the response.
---@field save string? The path of a file that gets the body of a success. It is written beside its place and renamed when it is complete.
---@field resume boolean? Whether an interrupted download to that file continues, if the server has the same content.
---@field max_bytes integer? The most bytes of a body, after decompression; without it 64 MiB in memory and for each event of a stream, and no other limit for files and streams.
---@field redirects integer? The most redirects that are followed; 10 without it.
---@field proxy string|false|nil A proxy, or `false` for none; without it the one of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
---@field ca string? A file with the certificates that are trusted; without it the file of `SSL_CERT_FILE`, or the system's.
---@field cert string? A file with the client's certificate.
---@field key string? A file with the key of that certificate.
---@field insecure boolean? Whether the server's certificate isn't checked.
---@field cookies flow.HTTPJar? A jar of cookies.
---@field http "1.1"|"2"|nil The version of the protocol; without it both sides agree on one.
---@field idempotency_key boolean|string|nil Whether a key tells the server that a repeated request is the same; with `true` each request has a key of its own, which is the same in all attempts of an op. Such a request is retried whatever its method is.
---@field progress? boolean|fun(done: integer, total: integer?) Whether the op shows the progress of the transfer; or a function that is called with the bytes that have moved, and with the total if it is known.
---@field stream boolean? Whether the task succeeds with the header, and the body is read with `chunks` or `events`.

---A response.
---@class flow.Response
---@field status integer The status.
---@field ok boolean Whether the status is from 200 to 299.
---@field headers table<string, string> The lines of the header by names, whatever their case. Values of one name are joined by `, `.
---@field body string The body; empty when it was saved. Reading a stream's is an error.
---@field url string The URL, after redirects.
---@field version string The version of the protocol.
---@field saved string? The path of the file that has the body.
---@field elapsed number Seconds from the start of the request to the end of the response.
---@field timings flow.HTTPTimings How long the stages of the last request took.
local Response = {}

---How long the stages of a request took, in seconds; 0 for those that a kept connection saved.
---@class flow.HTTPTimings
---@field resolve number Looking up the name.
---@field connect number Connecting.
---@field tls number Agreeing on the encryption.
---@field wait number Sending, and waiting for the first byte.
---@field receive number Receiving the rest.

---The task of a request.
---@class flow.HTTPTask: flow.Task<flow.Response>

---A jar of cookies: requests send those for their server, and keep those of responses.
---@class flow.HTTPJar

---An event that a server sent.
---@class flow.HTTPEvent
---@field event string Its kind; `message` unless the server says something else.
---@field data string Its lines of data, joined by line ends.
---@field id string? The last id that the server has given.
---@field retry number? The seconds after which to connect again.

---The fields that the requests to a service have in common, and limits for them. It can be called as `flow.http`, and
---has the same short forms: `api.get(path)` or `api:get(path)`.
---@class flow.HTTPClient
---@overload fun(request: string|flow.HTTPRequest, options?: flow.HTTPRequest): flow.HTTPTask
---@field get fun(path: string, request?: flow.HTTPRequest): flow.HTTPTask
---@field head fun(path: string, request?: flow.HTTPRequest): flow.HTTPTask
---@field delete fun(path: string, request?: flow.HTTPRequest): flow.HTTPTask
---@field post fun(path: string, request?: flow.HTTPRequest): flow.HTTPTask
---@field put fun(path: string, request?: flow.HTTPRequest): flow.HTTPTask
---@field patch fun(path: string, request?: flow.HTTPRequest): flow.HTTPTask

---The options of a client: its own, and some of a request, which hold where a request doesn't say something
---else.
---@class flow.HTTPClientOptions
---@field base string? The URL that the paths of requests follow. A URL of another server gets no `auth`, `cert` or `key`, and no headers that are secret or for one server, such as `Cookie`.
---@field headers table<string, any>? Lines for the header of each request; those of a request take precedence.
---@field auth string|flow.Secret|{ user: string, password: string|flow.Secret }|nil The credentials of requests that have none.
---@field max_connections integer? The most requests at a time; the others wait.
---@field rate integer|flow.Rate|nil How many requests may start in a second, or in `per` seconds: `{ n, per = seconds }`.
---@field cookies boolean|flow.HTTPJar|nil Whether the client has a jar of its own, or the jar that it uses.
---@field timeout number?
---@field connect_timeout number?
---@field idle_timeout number?
---@field check boolean?
---@field max_bytes integer?
---@field redirects integer?
---@field proxy string|false|nil
---@field ca string?
---@field cert string?
---@field key string?
---@field insecure boolean?
---@field http "1.1"|"2"|nil
---@field idempotency_key boolean|string|nil
---@field progress? boolean|fun(done: integer, total: integer?)

---The options of `flow.ops.HTTPOp`: those of a request, whose URL may have names in braces.
---@class flow.HTTPOpOptions: flow.HTTPRequest
---@field into string? The key that gets the body: JSON as a table, anything else as a string; with `save` the path.

---Starts a GET request.
---@param url string
---@param request? flow.HTTPRequest
---@return flow.HTTPTask task
function http.get(url, request) end

---Starts a HEAD request, whose response has no body.
---@param url string
---@param request? flow.HTTPRequest
---@return flow.HTTPTask task
function http.head(url, request) end

---Starts a DELETE request.
---@param url string
---@param request? flow.HTTPRequest
---@return flow.HTTPTask task
function http.delete(url, request) end

---Starts a POST request.
---@param url string
---@param request? flow.HTTPRequest
---@return flow.HTTPTask task
function http.post(url, request) end

---Starts a PUT request.
---@param url string
---@param request? flow.HTTPRequest
---@return flow.HTTPTask task
function http.put(url, request) end

---Starts a PATCH request.
---@param url string
---@param request? flow.HTTPRequest
---@return flow.HTTPTask task
function http.patch(url, request) end

---Makes a client for a service.
---@param options flow.HTTPClientOptions
---@return flow.HTTPClient
function http.client(options) end

---Makes an empty jar of cookies, for requests and clients.
---@return flow.HTTPJar
function http.jar() end

---Returns the value of the body, which is JSON. Another text is an error, as of `flow.json.decode`.
---@param options? flow.JSONReading
---@return any
function Response:json(options) end

---Returns the values of a header, one for each line, such as those of `set-cookie`.
---@param name string
---@return string[]
function Response:values(name) end

---Iterates over the body as it comes: `for chunk in res:chunks() do`. The loop waits for each chunk; while the
---script is busy with something else, the transfer pauses. The end of the loop ends the transfer.
---@return async fun(): string?
function Response:chunks() end

---Iterates over the events that a server sends (`text/event-stream`), as `chunks` does.
---@return async fun(): flow.HTTPEvent?
function Response:events() end

---Ends the transfer of a streamed body of which no more is needed.
function Response:close() end

return http
