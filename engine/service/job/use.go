// SPDX-License-Identifier: Apache-2.0

package job

import "github.com/unwindd/unwindd/engine/plugin"

// Use counts a job's use of the state that is kept from one job to the next.
type Use struct {
	// CodeObjects counts code objects whose rows and names an earlier job had left, and
	// NewCodeObjects the others.
	CodeObjects    uint64 `json:",omitempty"`
	NewCodeObjects uint64 `json:",omitempty"`
	// Plugins are the processes of plugins, by the plugin's name.
	Plugins map[string]plugin.Counts `json:",omitempty"`
	// PluginFailed: a plugin failed so often that it is not started again.
	PluginFailed bool `json:",omitempty"`
}

// used returns the use since the last call.
func (t *Tools) used() (u Use) {
	hits, misses := t.Engine.Library().Uses()
	u.CodeObjects, u.NewCodeObjects = hits-t.before.CodeObjects, misses-t.before.NewCodeObjects
	all := t.Engine.Plugins().Counts()
	for name, now := range all {
		if d := now.Since(t.before.Plugins[name]); d != (plugin.Counts{}) {
			if u.Plugins == nil {
				u.Plugins = map[string]plugin.Counts{}
			}
			u.Plugins[name] = d
		}
	}
	t.before = Use{CodeObjects: hits, NewCodeObjects: misses, Plugins: all}
	u.PluginFailed = t.Engine.Plugins().HasGivenUp()
	return u
}
