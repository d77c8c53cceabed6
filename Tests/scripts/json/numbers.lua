-- Integers stay integers and floats floats, bit by bit; what a number can't hold is an error both ways.
local json = require "flow.json"
local check = require "check"

local seed = 20240229
local function random(limit)
  seed = (seed * 6364136223846793005 + 1442695040888963407) & math.maxinteger
  return (seed >> 17) % limit
end

local function bits(number) return ("%a"):format(number) end

for _ = 1, 20000 do
  -- Any finite float: its bits at random.
  local word = random(1 << 32) << 32 | random(1 << 32)
  local number = string.unpack("<d", string.pack("<i8", word))
  if number == number and number - number == 0 then
    local text = json.encode(number)
    check.equal(bits(json.decode(text)), bits(number), text)
    assert(#text <= 24, text)
    local long = ("%.17g"):format(number):gsub("^(-?%d+)$", "%1.0")
    check.equal(bits(json.decode(long)), bits(number), long)
    assert(text:find "[.e]", text)
  end
  check.equal(json.decode(json.encode(word)), word)
  -- Decimal fractions, where a reader rounds.
  local text = ("%d.%de%d"):format(random(1 << 40), random(1 << 40), random(600) - 300)
  local expected = tonumber(text)
  if expected - expected == 0 then check.equal(bits(json.decode(text)), bits(expected), text) end
end

for _, case in ipairs {
  { 1.5, "1.5" }, { 1e15, "1000000000000000.0" }, { 1e16, "1e+16" }, { 1e-4, "0.0001" }, { 1e-5, "1e-05" },
  { 0.1, "0.1" }, { 100.0 + 0.5, "100.5" }, { 1e300, "1e+300" }, { 5e-324, "5e-324" }, { 2 ^ 53 + 0.0, "9007199254740992.0" },
  { 1 / 3, "0.3333333333333333" }, { 123456789.25, "123456789.25" },
} do check.equal(json.encode(case[1]), case[2]) end
check.equal(json.encode(1), "1")
check.equal(json.encode(1.0), "1.0")
check.equal(json.encode(-0.0), "-0.0")
check.equal(json.encode(0.0), "0.0")
check.equal(json.encode(math.mininteger), "-9223372036854775808")

check.usage(function() json.encode { 0 / 0 } end, "encode", "#1", "can't encode NaN at [1]")
check.usage(function() json.encode { a = 1 / 0 } end, "encode", "#1", "can't encode an infinity at a")
check.usage(function() json.encode(-1 / 0) end, "encode", "can't encode an infinity")

local big = "123456789012345678901234567890"
check.equal(json.decode(big), 123456789012345678901234567890.0)
check.equal(json.decode(big, { big = "string" }), big)
check.equal(json.decode("[-9223372036854775809]", { big = "string" })[1], "-9223372036854775809")
check.equal(json.decode("-9223372036854775808", { big = "string" }), math.mininteger)
check.equal(json.decode("1e30", { big = "string" }), 1e30)

-- Multiples of 2^64 aren't the zero that they wrap to.
check.equal(json.decode("-18446744073709551616", { big = "string" }), "-18446744073709551616")
check.equal(math.type(json.decode "-18446744073709551616"), "float")
