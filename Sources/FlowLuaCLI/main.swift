import FlowScripting
print(sprobe())
