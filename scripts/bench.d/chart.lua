-- The chart of scripts/bench: for each row with `chart` and `against` a bar that shows how the time
-- that flowlua takes compares with its peer's, on a logarithmic scale; 1 x is in the middle.
local WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 860, 420, 70, 84, 26, 16

local function escaped(text)
  return (text:gsub("[&<>]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }))
end

return function(rows, machine, path)
  local shown, reach = {}, math.log(2)
  for _, row in ipairs(rows) do
    local ratio = row.charted or row.ratio
    if row.chart and ratio then
      shown[#shown + 1] = { label = row.chart .. " / " .. row.against, ratio = ratio }
      reach = math.max(reach, math.abs(math.log(ratio)))
    end
  end
  table.sort(shown, function(a, b) return a.ratio < b.ratio end)
  local height = TOP + #shown * STEP + 40
  local middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
  local scale = (WIDTH - LEFT - RIGHT) / 2 / reach
  local svg = {}
  local function add(format, ...) svg[#svg + 1] = format:format(...) end
  local function text(x, y, anchor, size, fill, words)
    add('<text x="%.0f" y="%.0f" text-anchor="%s" font-size="%d" fill="%s">%s</text>', x, y, anchor,
      size, fill, escaped(words))
  end
  add('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
    .. 'font-family="system-ui, sans-serif">', WIDTH, height, WIDTH, height)
  add('<rect width="%d" height="%d" fill="#ffffff"/>', WIDTH, height)
  text(20, 30, "start", 17, "#1f2328", "Time that flowlua takes, compared with what else does it")
  text(20, 52, "start", 12, "#59636e", machine)
  text(middle - 8, TOP - 10, "end", 12, "#1a7f37", "faster")
  text(middle + 8, TOP - 10, "start", 12, "#bc4c00", "slower")
  add('<line x1="%.0f" y1="%d" x2="%.0f" y2="%d" stroke="#8c959f"/>', middle, TOP - 4, middle,
    TOP + #shown * STEP)
  for i, row in ipairs(shown) do
    local y = TOP + (i - 1) * STEP
    local reached = math.log(row.ratio) * scale
    local faster = row.ratio < 1
    text(LEFT - 60, y + BAR - 3, "end", 12, "#1f2328", row.label)
    add('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>',
      faster and middle + reached or middle, y, math.max(math.abs(reached), 1), BAR,
      faster and "#2da44e" or "#e16f24")
    text(middle + reached + (faster and -6 or 6), y + BAR - 3, faster and "end" or "start", 12,
      "#1f2328", (row.ratio < 0.1 and "%.3f x" or "%.2f x"):format(row.ratio))
  end
  text(20, height - 14, "start", 11, "#59636e",
    "To repeat it: scripts/bench --chart FILE.svg. The scale is logarithmic.")
  add("</svg>")
  local file = assert(io.open(path, "w"))
  assert(file:write(table.concat(svg, "\n"), "\n"))
  file:close()
end
