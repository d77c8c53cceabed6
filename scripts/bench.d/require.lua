require "flow"
