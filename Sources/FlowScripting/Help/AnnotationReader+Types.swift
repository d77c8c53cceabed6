/// The types in the annotations, as far as completion needs them.
extension AnnotationReader {
  /// A member of a class or of its parents.
  private func member(_ name: String, of className: String) -> Entry? {
    var next: String? = className
    while let current = next, let found = classes[current] {
      if let entry = found.members[name] { return entry }
      next = found.parent
    }
    return nil
  }

  /// The class of a function's result, or of a field; nil if it has no class here.
  func resultClass(of name: String, in className: String) -> String? {
    guard let type = member(name, of: className)?.type else { return nil }
    // `T` is the object of the method call.
    if type.hasPrefix("T ") { return className }
    return type.hasPrefix("flow.") ? known(type.prefix { $0.isLetter || $0 == "." }) : nil
  }

  /// The class of options for a function's argument, by the argument's index; nil for others.
  func optionsClass(ofArgument index: Int, of name: String, in className: String) -> String? {
    guard let entry = member(name, of: className), index < entry.parameters.count else {
      return nil
    }
    return optionsClass(in: entry.parameters[index])
  }

  /// The class of options for a field of options; nil for others.
  func optionsClass(ofField name: String, in className: String) -> String? {
    member(name, of: className)?.type.flatMap { optionsClass(in: $0) }
  }

  private func optionsClass(in text: String) -> String? {
    text.split { !$0.isLetter && $0 != "." }
      .first { $0.hasPrefix("flow.") && $0.hasSuffix("Options") }.flatMap { known($0) }
  }

  private func known(_ title: Substring) -> String? {
    let name = title.dropFirst("flow.".count).lowercased()
    return classes[name] == nil ? nil : name
  }
}
