internal import LuaVM
internal import FlowEngine
public func sprobe() -> Int32 { vmprobe() + probe() }
