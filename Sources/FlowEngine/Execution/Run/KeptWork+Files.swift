extension KeptWork {
  /// Sets which files of an op count, by its declarations.
  func setFiles(of op: Op, value: (DataKey) -> FlowValue?) {
    guard op.declarations.hasFiles else { return }
    let names = inputs.map(\.name)
    for (key, type) in op.needs(on: loop) where type.hasFiles {
      guard let value = value(key), let input = names.firstIndex(of: loop.keys.name(of: key)) else {
        continue
      }
      inputFiles.append((input, type.files(in: value)))
    }
    outputFiles = op.gives(on: loop).filter { $0.type.hasFiles }
  }
}
