internal import FlowEngine
internal import LuaVM
