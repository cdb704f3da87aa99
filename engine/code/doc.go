// Package code has code objects at work: where the rows of call frame
// information of an address come from, what the code there is called, and what
// else a walk asks of it.
//
// A Library holds the code objects of an engine. A code object that several
// targets have loaded is one Object, told by its file, so that its rows, its
// names and what its architecture's plugin said of it are found out once:
//
//	library := code.NewLibrary(plugins, code.DefaultBytes)
//	m := library.Load(module, code.Loading{})
//	defer m.Close()
//	row, err := m.Row(ctx, address, exact)
//	names := m.Names(address, false)
//
// # Sources
//
// A row comes from the first of the sources in rowSources that has one, a name
// from the first of those in nameSources. A new source is a type with one method,
// and a line in the list.
package code
