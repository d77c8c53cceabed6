-- A terminal with a command and what it prints, as a picture.
local pictures = {}

local colors = {
  { "^%$ ", "#7ee787" }, { "^=+ ", "#8b949e" }, { "DidFinish: successfully", "#7ee787" },
  { "isSuccess: true", "#7ee787" }, { "DidFinish: ", "#ff7b72" }, { "isSuccess: false", "#ff7b72" },
  { "Retry %d", "#ffa657" }, { "WillStart", "#79c0ff" }, { "%[DataBucket%]", "#d2a8ff" },
  { "Group", "#ffa657" },
}

local function escaped(text)
  return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }))
end

-- The command and the lines of its output become an SVG with a font of one width.
function pictures.terminal(command, output)
  local lines = { "$ " .. command }
  for line in output:gmatch "([^\n]*)\n" do lines[#lines + 1] = line end
  local columns = 0
  for _, line in ipairs(lines) do columns = math.max(columns, utf8.len(line) or #line) end
  local width, height = math.ceil(columns * 7.8) + 32, #lines * 18 + 52
  local out = {
    ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">')
      :format(width, height, width, height),
    ('<rect width="%d" height="%d" rx="8" fill="#0d1117"/>'):format(width, height),
    '<circle cx="20" cy="18" r="6" fill="#ff5f56"/><circle cx="40" cy="18" r="6" fill="#ffbd2e"/>'
      .. '<circle cx="60" cy="18" r="6" fill="#27c93f"/>',
    '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="13" '
      .. 'fill="#c9d1d9" xml:space="preserve">',
  }
  for i, line in ipairs(lines) do
    local color = "#c9d1d9"
    for _, row in ipairs(colors) do
      if line:find(row[1]) then
        color = row[2]
        break
      end
    end
    out[#out + 1] = ('<text x="16" y="%d" fill="%s">%s</text>')
      :format(34 + i * 18, color, escaped(line))
  end
  out[#out + 1] = "</g>\n</svg>\n"
  return table.concat(out, "\n")
end

return pictures
