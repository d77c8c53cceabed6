---@meta flow.json

---JSON to Lua values and back: `flow.json` or `require "flow.json"`.
---
---Numbers without a point and an exponent are integers, all others floats; both are written so that they
---read back the same. A member of an object that is null is left out, an item of an array is `json.null`.
---@class flow.JSON
---@field null lightuserdata JSON's null. It isn't nil, so it can be an item of a list, and counts as true in a condition; compare with `==`.
local json = {}

---The options of a reader.
---@class flow.JSONReading
---@field null "drop"|"keep"|nil With `"keep"`, a member of an object that is null is `json.null` instead of being left out.
---@field big "number"|"string"|nil With `"string"`, an integer beyond 64 bits stays text instead of becoming a float.
---@field strict boolean? Whether an object with two members of the same key is an error; otherwise the last one counts.
---@field max_depth integer? How many arrays and objects may contain each other; 1000 without it.

---The options of `json.lines`.
---@class flow.JSONLinesReading: flow.JSONReading
---@field max_bytes integer? The most bytes of a line; 64 MiB without it.
---@field types table<string, string>? The types that fields of the values must have, as `needs` has them: `{ id = "integer", tags = "string[]?" }`. A value with another one is an error.
---@field on_error (fun(problem: flow.Error))? Called with the error of a line, which also has its `text`, of one with more than `max_bytes` the first 1,000 bytes; the line is left out. It may wait.

---The options of a writer.
---@class flow.JSONWriting
---@field indent integer? Spaces for each level, up to 16; without it the text is one line.
---@field sort boolean? With `false`, the members of an object aren't sorted by their keys.
---@field empty "object"|"array"|nil The form of an empty table without a mark; an object without this option.
---@field invalid "error"|"replace"|nil With `"replace"`, bytes that aren't UTF-8 become U+FFFD instead of being an error.
---@field ascii boolean? Whether all that isn't ASCII is escaped.
---@field secrets boolean? Whether the contents of secrets are written. The text is then a secret, too.
---@field max_depth integer? How many tables may contain each other; 1000 without it.

---Returns the value of a JSON text.
---
---Arrays become tables with a mark, so that an empty one remains an array. A text that isn't JSON is an error
---with `code = "json"`, `line`, `column` (in characters) and `offset` (the number of the byte, from 1).
---@param text string
---@param options? flow.JSONReading
---@return any
function json.decode(text, options) end

---Returns the JSON of a value.
---
---A table with the keys 1 to n is an array, one with string keys an object, whatever its metatable is. A value
---that JSON can't represent is an error that names the way to it: `can't encode a function at items[3].run`.
---@param value any
---@param options? flow.JSONWriting
---@return string
function json.encode(value, options) end

---Marks a table as an array, and returns it; without a table it makes one.
---@generic T: table
---@param table? T
---@return T
function json.array(table) end

---Marks a table as an object, and returns it; without a table it makes one.
---@generic T: table
---@param table? T
---@return T
function json.object(table) end

---Returns an iterator over a text or file that has one JSON value in each line. Empty lines are skipped. A
---file is read piece by piece.
---@async
---@param source string|{path: string}
---@param options? flow.JSONLinesReading
---@return fun(): any
function json.lines(source, options) end

---Returns the value in a JSON file. Other code continues while it is read.
---@async
---@param path string
---@param options? flow.JSONReading
---@return any
function json.read(path, options) end

---Writes a value as JSON to a file, with a line feed at the end. The file has the old content or the new one,
---never a part.
---@async
---@param path string
---@param value any
---@param options? flow.JSONWriting
function json.write(path, value, options) end

return json
