import FlowEngine
print(probe())
