-- luacheck's settings; scripts/check runs it over the whole repository.
std = "lua54"
max_line_length = 100
exclude_files = { ".build", ".git" }

-- Parameters that a signature prescribes needn't be used.
unused_args = false

-- The command-line tests use what stands in Tests/scripts/lib, and misuse things on purpose:
-- they set globals, shadow, and leave values unused.
files["Tests/scripts"] = {
  max_line_length = 140,
  ignore = {
    "111", "112", "113", "121", "142", "143", "211", "212", "213", "221", "231", "311", "4..", "511", "512", "542", "613",
  },
}

-- Scripts whose runs earlier versions have kept.
files["Tests/stores"] = { max_line_length = 140 }

-- Annotations: fields take a line each, and the locals only carry methods.
files["Sources/FlowScripting/Help"] = {
  max_line_length = false,
  ignore = { "211", "241" },
}
