// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/unwindd/unwindd/engine/service"
)

// reloaded are the settings that a server takes while it serves. The others it takes when it
// starts.
var reloaded = []string{
	"tokens", "tls-cert", "tls-key", "client-ca", "drain", "log-level", "max-connections", "max-waiting", "max-waiting-each", "max-frames", "max-time",
	"max-idle", "max-body", "max-answer", "max-spool", "max-objects",
}

// reapplySettings takes changed values of the table serve. It calls later for settings that
// cannot change while the server serves.
func (f *serveFlags) reapplySettings(values flagValues, later func(setting string)) error {
	before, all := flagValues{}, flagValues{}
	if f.file != nil {
		before = f.file.flags["serve"]
	}
	maps.Copy(all, before)
	maps.Copy(all, values)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		flag := f.set.Lookup(name)
		if flag == nil || flag.Changed || slices.Equal(before[name], values[name]) {
			continue
		}
		if !slices.Contains(reloaded, name) {
			later(name)
			continue
		}
		text := flag.DefValue
		if texts, isSet := values[name]; isSet {
			text = texts[0]
		}
		if err := flag.Value.Set(text); err != nil {
			return fmt.Errorf("%s: serve.%s: %w", f.config, name, err)
		}
	}
	return nil
}

// reload reads the configuration file, tokens and certificates again. On an error all stays
// as it was.
func (f *serveFlags) reload(s *service.Server, secure *security) {
	notify("RELOADING=1")
	defer notify("READY=1")
	before := *f
	tokens, settings, err := f.readAgain(s, secure)
	if err != nil {
		*f = before
		s.Log.Error("not reloaded: what was read before holds", "error", err)
		return
	}
	f.file = settings
	s.SetTokens(tokens)
	s.SetLimits(f.allLimits())
	s.Log.SetLevel(f.level())
	s.Log.Info("reloaded")
}

func (f *serveFlags) readAgain(s *service.Server, secure *security) (tokens service.Tokens, settings *settings, err error) {
	if settings, err = f.readSettings(); err != nil {
		return nil, nil, err
	}
	var later []string
	if err := f.reapplySettings(settings.flags["serve"], func(name string) { later = append(later, name) }); err != nil {
		return nil, nil, err
	}
	if err := f.checkLimits(); err != nil {
		return nil, nil, err
	}
	if tokens, err = f.readTokens(); err != nil {
		return nil, nil, err
	}
	if f.isOpen && tokens == nil && f.clientCA == "" {
		return nil, nil, fmt.Errorf("others reach this server: expected tokens or client-ca")
	}
	if secure == nil && f.certificate != "" {
		later, f.certificate, f.key, f.clientCA = append(later, "tls-cert"), "", "", ""
	}
	if err := secure.load(); err != nil {
		return nil, nil, err
	}
	for _, name := range later {
		s.Log.Warn("a setting has changed that a server takes when it starts", "setting", name)
	}
	return tokens, settings, nil
}
