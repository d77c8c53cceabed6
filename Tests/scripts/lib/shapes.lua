-- A module with classes, for tests of what travels by its name.
local shapes = {}
shapes.Point = {}
shapes.Point.__index = shapes.Point
shapes.Point.__name = "Point"
function shapes.Point.new(x) return setmetatable({ x = x }, shapes.Point) end
function shapes.Point:double() return shapes.Point.new(self.x * 2) end
shapes.__index = shapes
function shapes.new() return setmetatable({}, shapes) end
return shapes
