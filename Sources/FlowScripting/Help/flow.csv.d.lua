---@meta flow.csv

---CSV to tables and back, as RFC 4180 describes it: `flow.csv` or `require "flow.csv"`.
---@class flow.CSV
local csv = {}

---The options of `csv.rows`.
---@class flow.CSVReading
---@field header boolean|string[]|nil Whether the first row has the names of the columns, as without this option; or the names. With `false`, rows are lists.
---@field separator string? The byte between two fields; a comma without it.
---@field max_bytes integer? The most bytes of a row; 64 MiB without it.
---@field on_error (fun(problem: flow.Error))? Called with the error of a row, which also has its `text`, of one with more than `max_bytes` the first 1,000 bytes; the row is left out. It may wait.
---@field types table<string|integer, string>? The types of columns, by name, or by number for lists: `"integer"`, `"number"`, `"boolean"`, `"string"`. With a `?` an empty field is nil. Other columns are strings.

---The options of `csv.encode`.
---@class flow.CSVWriting
---@field columns string[]? The names of the columns, in order. Without them records have all their keys, sorted.
---@field header boolean? Whether the names come first; `true` without it. Lists have names only with `columns`.
---@field separator string? The byte between two fields; a comma without it.
---@field newline "\n"|"\r\n"|nil The end of each row; a line feed without it.

---Returns an iterator over the rows of a text or file: tables with the columns' names as keys, or lists. A
---file is read piece by piece, and other code continues meanwhile.
---
---Broken quotes, a wrong number of fields and a field that isn't of its column's type are errors with
---`code = "csv"` and `line`. Empty lines and a byte-order mark at the beginning are skipped.
---@async
---@param source string|{path: string}
---@param options? flow.CSVReading
---@return fun(): table<string|integer, any>
function csv.rows(source, options) end

---Returns the CSV of a list of rows: of lists, or of tables with the columns' names as keys.
---
---Values are strings, numbers and booleans; nil and `json.null` are empty fields. A shorter list is filled up.
---@param rows table[]
---@param options? flow.CSVWriting
---@return string
function csv.encode(rows, options) end

return csv
