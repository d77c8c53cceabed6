-- run: examples/library $OUT
--
-- Writes a manifest of all files under a folder: size, lines, longest line, and the most frequent
-- words of a text or the checksum of anything else. Unreadable files are listed with reasons.
--
--   scripts/flowlua examples/manifest.lua DIR [MANIFEST]
--
-- Each file is one line of the manifest, tabs between its fields; control characters and
-- backslashes in names are escaped as Lua does it. MANIFEST is manifest.txt by default.
local flow = require "flow"

local WORDS_SHOWN = 3

local function printable(name)
  return (name:gsub("[%c\\]", function(c)
    return c == "\\" and "\\\\" or ("\\x%02X"):format(c:byte())
  end))
end

-- Adler-32: not to keep anybody out, only to see a change.
local function checksum(bytes)
  local a, b = 1, 0
  for position = 1, #bytes, 64 do
    local chunk = { bytes:byte(position, position + 63) }
    for i = 1, #chunk do
      a = a + chunk[i]
      b = b + a
    end
    a, b = a % 65521, b % 65521
  end
  return ("%08x"):format(b << 16 | a)
end

local function lines_of(text)
  local count, longest, position = 0, 0, 1
  while position <= #text do
    local stop = text:find("\n", position, true) or #text + 1
    count, longest = count + 1, math.max(longest, stop - position)
    position = stop + 1
  end
  return count, longest
end

local function frequent_words(text)
  local counts, words = {}, {}
  for word in text:lower():gmatch("%a+") do
    if not counts[word] then
      words[#words + 1] = word
      counts[word] = 0
    end
    counts[word] = counts[word] + 1
  end
  table.sort(words, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  local shown = {}
  for i = 1, math.min(#words, WORDS_SHOWN) do
    shown[i] = ("%s:%d"):format(words[i], counts[words[i]])
  end
  return table.concat(shown, " ")
end

local ListFilesOp = flow.op("ListFilesOp", {
  doc = "Lists all files under a folder, links that lead nowhere included.",
  needs = { folder = "string" },
  gives = { paths = "string[]" },
  run = function(ctx)
    local folder = ctx:get("folder")
    -- A name that begins with a dash would be an option of find.
    local start = folder:find("^-") and "./" .. folder or folder
    -- Only a NUL can't be part of a file name.
    local find = flow.exec(
      { "find", start, "(", "-type", "f", "-o", "-xtype", "l", ")", "-print0" }, { check = false })
    local found = find:await()
    local paths = {}
    for path in found.stdout:gmatch("([^\0]+)\0") do
      paths[#paths + 1] = path
    end
    if found.status ~= 0 then
      if #paths == 0 then ctx:fail("can't list " .. printable(folder)) end
      ctx:log("some folders couldn't be listed")
    end
    table.sort(paths)
    ctx:set("paths", paths)
  end,
})

local ReadFileOp = flow.op("ReadFileOp", {
  doc = "Reads a file and describes it.",
  needs = { path = "string" },
  gives = { entry = "table" },
  run = function(ctx)
    local path = ctx:get("path")
    local function unreadable(reason)
      ctx:fail(("%s: %s"):format(printable(path), reason), { reason = reason })
    end
    local file <close>, reason = io.open(path, "rb")
    if not file then unreadable(reason:sub(#path + #": " + 1)) end
    local content, trouble = file:read("a") -- a folder can be opened, but not read
    if not content then unreadable(trouble) end
    local entry = { path = path, size = #content }
    if content:find("\0", 1, true) then
      entry.checksum = checksum(content)
    else
      entry.lines, entry.longest = lines_of(content)
      entry.words = frequent_words(content)
    end
    ctx:log(("%s: %d bytes"):format(printable(path), entry.size))
    ctx:set("entry", entry)
  end,
})

local WriteManifestOp = flow.op("WriteManifestOp", {
  doc = "Writes the manifest in one piece: a reader sees the old one or the new one.",
  needs = { entries = "table[]", unreadable = "table[]?", manifest = "string" },
  run = function(ctx)
    local rows = {}
    for _, entry in ipairs(ctx:get("entries")) do
      local described = entry.checksum and "adler32 " .. entry.checksum
        or ("%d lines\tlongest %d\t%s"):format(entry.lines, entry.longest, entry.words)
      rows[#rows + 1] = ("%s\t%d bytes\t%s\n"):format(printable(entry.path), entry.size, described)
    end
    for _, failure in ipairs(ctx:has("unreadable") and ctx:get("unreadable") or {}) do
      rows[#rows + 1] = ("%s\tunreadable\t%s\n"):format(
        printable(failure.input), failure.error.reason)
    end
    table.sort(rows)

    local path = ctx:get("manifest")
    local file <close> = assert(io.open(path, "wb"))
    assert(file:write(table.concat(rows)))
    assert(file:close()) -- a full disk shows here
    ctx:log(("%d rows in %s"):format(#rows, printable(path)))
  end,
})

local folder, manifest = arg[1], arg[2] or "manifest.txt"
if not folder or arg[3] then
  io.stderr:write("usage: manifest.lua DIR [MANIFEST]\n")
  os.exit(1)
end

local run = flow.new("manifest")
  :data { folder = folder, manifest = manifest }
  :add(ListFilesOp)
  :add_grouped(ReadFileOp, flow.dispatcher {
    input = "paths",
    output = "entries",
    max_concurrent = 8,
    allow_empty = true,
    allow_failure = true,
    failures = "unreadable",
  })
  :add(WriteManifestOp)
  :did_finish(function(run) io.write(run:summary()) end)
  :run()

if not run.ok then
  io.stderr:write("manifest.lua: ", tostring(run.error), "\n")
  os.exit(1)
end

local bytes = 0
for _, entry in ipairs(run.data.entries) do bytes = bytes + entry.size end
local unreadable = run.data.unreadable or {}
print(("%s: %d files, %d bytes, %d unreadable"):format(
  printable(manifest), #run.data.entries, bytes, #unreadable))
for _, failure in ipairs(unreadable) do
  print("unreadable: " .. tostring(failure.error))
end
