// SPDX-License-Identifier: Apache-2.0

// Package code has code objects at work: it finds the rows of call frame information and the names
// of an address, and whatever else a walk needs of the code there.
//
// A Library has the code objects of an engine. A code object that several targets have loaded is
// one Object, identified by its file, so that its rows, its names and the answers of its
// architecture's plugin are found once:
//
//	func show(ctx context.Context, plugins *plugin.Manager, m *target.Module, address uint64) {
//		library := code.NewLibrary(plugins, code.DefaultBytes)
//		defer library.Close()
//		loaded := library.Load(m, code.Loading{})
//		defer loaded.Close()
//		row, err := loaded.Row(ctx, address, true)
//		fmt.Println(row, err, loaded.Names(address, false))
//	}
//
// # Sources
//
// A row comes from the first of the sources in rowSources that has one, a name
// from the first of those in nameSources. A new source is a type with one method,
// and a line in the list.
//
// The package is large because each source reads the same Object, with its lock held, and uses
// the results of the sources before it.
package code
