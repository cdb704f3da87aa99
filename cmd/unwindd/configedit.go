// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// This file changes one setting of a configuration file, and leaves each other byte as it is.

// pinsTable is the path of the table of pins.
var pinsTable = []string{"plugins", "pins"}

// pinPlace is where a pin is to be written into the text of a configuration file.
type pinPlace struct {
	start, end int    // of the text that it replaces; at the start alone it replaces none
	before     string // written before the value
	after      string // and after it
}

// withPin returns the text of a configuration file with the pin of a plugin.
func withPin(text []byte, name, sum string) ([]byte, error) {
	line := fmt.Sprintf("under [plugins.pins]: %s = %q", tomlKey(name), sum)
	place, err := findPin(text, name)
	if err != nil {
		return nil, fmt.Errorf("%w; write it by hand, %s", err, line)
	}
	changed := slices.Concat(text[:place.start], []byte(place.before), fmt.Appendf(nil, "%q", sum), []byte(place.after), text[place.end:])
	var was, is map[string]any
	if err := errors.Join(toml.Unmarshal(text, &was), toml.Unmarshal(changed, &is)); err != nil {
		return nil, fmt.Errorf("the pin cannot be added to the file as it is written (%w); write it by hand, %s", err, line)
	}
	if !setPin(&was, name, sum) || !reflect.DeepEqual(was, is) {
		return nil, fmt.Errorf("the pin cannot be added to the file as it is written; write it by hand, %s", line)
	}
	return changed, nil
}

// setPin sets a pin in decoded settings; ok is false where something else is in its place.
func setPin(all *map[string]any, name, sum string) (ok bool) {
	at := *all
	if at == nil {
		at = map[string]any{}
		*all = at
	}
	for _, key := range pinsTable {
		if at[key] == nil {
			at[key] = map[string]any{}
		}
		next, isTable := at[key].(map[string]any)
		if !isTable {
			return false
		}
		at = next
	}
	at[name] = sum
	return true
}

// findPin finds the place of a plugin's pin: its value, or behind the last pin of the same table,
// or a table of its own at the end.
func findPin(text []byte, name string) (pinPlace, error) {
	var p unstable.Parser
	p.Reset(text)
	var table []string
	found, isFound := pinPlace{}, false
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = keysOf(e)
			if slices.Equal(table, pinsTable) && e.Kind == unstable.Table {
				found, isFound = behindLine(text, lastKeyEnd(e), tomlKey(name)+" = "), true
			}
		case unstable.KeyValue:
			keys := keysOf(e)
			path := slices.Concat(table, keys)
			value := e.Value()
			end := int(value.Raw.Offset + value.Raw.Length)
			switch {
			case len(path) != len(pinsTable)+1 || !slices.Equal(path[:len(pinsTable)], pinsTable) || value.Kind != unstable.String:
			case path[len(path)-1] == name:
				return pinPlace{start: int(value.Raw.Offset), end: end}, p.Error()
			default:
				before := ""
				for _, k := range keys[:len(keys)-1] {
					before += tomlKey(k) + "."
				}
				found, isFound = behindLine(text, end, before+tomlKey(name)+" = "), true
			}
		}
	}
	if err := p.Error(); err != nil || isFound {
		return found, err
	}
	place := behindLine(text, len(text), "[plugins.pins]\n"+tomlKey(name)+" = ")
	if len(bytes.TrimSpace(text)) > 0 {
		place.before = strings.TrimPrefix(place.before, "\n")
		if !bytes.HasSuffix(text, []byte("\n")) {
			place.before = "\n" + place.before
		}
		place.before = "\n" + place.before
	}
	return place, nil
}

// behindLine is the place of a new line behind the one that a byte is in.
func behindLine(text []byte, offset int, before string) pinPlace {
	end := len(text)
	if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
		end = offset + i + 1
	} else if len(text) > 0 && text[len(text)-1] != '\n' {
		before = "\n" + before
	}
	after := "\n"
	if end >= 2 && text[end-1] == '\n' && text[end-2] == '\r' {
		after = "\r\n"
	}
	return pinPlace{start: end, end: end, before: before, after: after}
}

// keysOf returns the parts of the key of an expression.
func keysOf(e *unstable.Node) (keys []string) {
	for it := e.Key(); it.Next(); {
		keys = append(keys, string(it.Node().Data))
	}
	return keys
}

// lastKeyEnd returns where the key of an expression ends.
func lastKeyEnd(e *unstable.Node) (end int) {
	for it := e.Key(); it.Next(); {
		raw := it.Node().Raw
		end = int(raw.Offset + raw.Length)
	}
	return end
}

// tomlKey returns a key as TOML writes it.
func tomlKey(name string) string {
	isBare := name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
	if isBare {
		return name
	}
	return fmt.Sprintf("%q", name)
}
