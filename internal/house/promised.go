// SPDX-License-Identifier: Apache-2.0

// Package house has tests of the project's own house: its words, and the names that it
// promises.
package house

// Module begins the import path of each package.
const Module = "github.com/unwindd/unwindd/"

// Promised are the packages that keep their names from one release to the next.
var Promised = []string{"engine", "engine/trace", "sdk", "sdk/archtest", "sdk/codeflow", "cfi", "locexpr"}

// Inner are the members of promised types for unwindd's own packages: their types are internal,
// and they promise nothing.
var Inner = []string{
	"engine.Downloads.Connect", "engine.Engine.Attach", "engine.Engine.Finder", "engine.Engine.Library", "engine.Engine.Plugins", "engine.Engine.ProfileElsewhere", "engine.Engine.RecordedFiles",
	"engine.Options.Plugins", "engine.Options.Remote", "engine.Options.Symbols", "engine.Options.Unpack", "engine.Remotes.Debuginfod", "engine.Remotes.Stores",
	"engine.Snapshot.Contents", "engine.Target.CodeReader", "engine.Target.Process",
}

// Growing are the promised interfaces that may get methods. A plugin implements those with a
// name beside them, the type that it embeds, which has each new method; the engine implements
// the others.
var Growing = map[string]string{"sdk.Architecture": "sdk.Base", "sdk.Runtime": "sdk.RuntimeBase", "sdk.Engine": "", "sdk.RuntimeEngine": ""}
