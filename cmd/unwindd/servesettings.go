// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/service"
)

// serveSettings are the settings of `unwindd serve` in the configuration file: each has the
// name of a flag. nil: the file does not have it.
type serveSettings struct {
	Listen         []string         `toml:"listen"`
	Sysroot        *string          `toml:"sysroot"`
	DebugDirs      []string         `toml:"debug-dir"`
	Debuginfod     []string         `toml:"debuginfod"`
	Symbols        []string         `toml:"symbols"`
	State          *string          `toml:"state"`
	Hosts          []string         `toml:"host"`
	Tokens         *string          `toml:"tokens" reload:"yes"`
	Certificate    *string          `toml:"tls-cert" reload:"yes"`
	Key            *string          `toml:"tls-key" reload:"yes"`
	ClientCA       *string          `toml:"client-ca" reload:"yes"`
	Drain          *settingDuration `toml:"drain" reload:"yes"`
	LogJSON        *bool            `toml:"log-json"`
	LogLevel       *string          `toml:"log-level" reload:"yes"`
	InProcess      *bool            `toml:"in-process"`
	Workers        *int             `toml:"workers"`
	MaxWaiting     *int             `toml:"max-waiting" reload:"yes"`
	MaxWaitingEach *int             `toml:"max-waiting-each" reload:"yes"`
	MaxFrames      *int             `toml:"max-frames" reload:"yes"`
	MaxTime        *settingDuration `toml:"max-time" reload:"yes"`
	MaxIdle        *settingDuration `toml:"max-idle" reload:"yes"`
	MaxBody        *settingSize     `toml:"max-body" reload:"yes"`
	MaxAnswer      *settingSize     `toml:"max-answer" reload:"yes"`
	MaxUnpacked    *settingSize     `toml:"max-unpacked"`
	MaxMemory      *settingSize     `toml:"max-memory"`
	MaxSpool       *settingSize     `toml:"max-spool" reload:"yes"`
	MaxObjects     *settingSize     `toml:"max-objects" reload:"yes"`
	MaxReports     *settingOptional `toml:"max-reports"`
	Queue          *string          `toml:"queue"`
	QueueCreds     *string          `toml:"queue-creds"`
	QueueCA        *string          `toml:"queue-ca"`
	QueueCert      *string          `toml:"queue-cert"`
	QueueKey       *string          `toml:"queue-key"`
	MaxHandedOver  *int             `toml:"max-handed-over"`
}

// settingDuration is a duration, and settingSize a number of bytes, in the syntax of flags;
// a settingOptional may be 0.
type (
	settingDuration string
	settingSize     string
	settingOptional string
)

// check refuses settings that are no values of their flags. text is the file's.
func (s *serveSettings) check(text []byte) (line int, err error) {
	for _, f := range serveFields {
		var size byteSize
		switch v := reflect.ValueOf(s).Elem().FieldByIndex(f.Index).Interface().(type) {
		case *settingDuration:
			if v == nil {
				continue
			}
			if d, wrong := time.ParseDuration(string(*v)); wrong != nil || d <= 0 {
				err = errors.New("expected a duration, as 90s or 2m")
			}
		case *settingSize:
			if v == nil {
				continue
			}
			err = size.Set(string(*v))
		case *settingOptional:
			if v == nil {
				continue
			}
			err = (*optionalSize)(&size).Set(string(*v))
		}
		if err != nil {
			name := f.Tag.Get("toml")
			return lineOf(text, name), fmt.Errorf("serve.%s: %w", name, err)
		}
	}
	return 0, nil
}

// lineOf returns the line of a setting in valid TOML.
func lineOf(text []byte, name string) int {
	match := regexp.MustCompile(`(?m)^[^#\n]*?["'.]?\b` + regexp.QuoteMeta(name) + `["']?\s*=`).FindIndex(text)
	if match == nil {
		return 1
	}
	return 1 + bytes.Count(text[:match[1]], []byte("\n"))
}

// settingKinds describe the values of settings, by their types in serveSettings.
var settingKinds = map[reflect.Type]string{
	reflect.TypeFor[[]string]():         "a list of strings",
	reflect.TypeFor[*string]():          "a string",
	reflect.TypeFor[*bool]():            "true or false",
	reflect.TypeFor[*int]():             "a number",
	reflect.TypeFor[*settingDuration](): `a string with a duration, as "90s" or "2m"`,
	reflect.TypeFor[*settingSize]():     `a string with bytes, as "500M" or "4G"`,
	reflect.TypeFor[*settingOptional](): `a string with bytes, as "500M" or "0"`,
}

// serveFields are the fields of serveSettings.
var serveFields = reflect.VisibleFields(reflect.TypeFor[serveSettings]())

// serveNames lists the settings.
func serveNames() string {
	var names []string
	for _, f := range serveFields {
		names = append(names, f.Tag.Get("toml"))
	}
	slices.Sort(names)
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// texts returns the values of a setting in the syntax of its flag; ok is false where the
// file does not have it.
func (s *serveSettings) texts(field reflect.StructField) (list []string, ok bool) {
	switch v := reflect.ValueOf(s).Elem().FieldByIndex(field.Index); {
	case v.IsNil():
		return nil, false
	case v.Kind() == reflect.Slice:
		return v.Interface().([]string), true
	default:
		return []string{fmt.Sprint(v.Elem().Interface())}, true
	}
}

// applyConfig sets flags that are not on the command line to the settings of the
// configuration file.
func (f *serveFlags) applyConfig(flags *pflag.FlagSet) error {
	s, err := f.settings()
	if err != nil {
		return err
	}
	f.set, f.onCommandLine, f.read = flags, map[string]bool{}, s.Serve
	flags.Visit(func(flag *pflag.Flag) { f.onCommandLine[flag.Name] = true })
	for _, field := range serveFields {
		name := field.Tag.Get("toml")
		texts, ok := s.Serve.texts(field)
		if !ok || f.onCommandLine[name] || flags.Lookup(name) == nil { // a worker has no fleet to hand over to
			continue
		}
		for _, text := range texts {
			if err := flags.Set(name, text); err != nil {
				return fmt.Errorf("%s: serve.%s: %w", f.config, name, err)
			}
		}
	}
	return nil
}

// reapplyConfig takes changed settings of the configuration file. It calls later for
// settings that cannot change while the server serves.
func (f *serveFlags) reapplyConfig(s *serveSettings, later func(setting string)) error {
	for _, field := range serveFields {
		name := field.Tag.Get("toml")
		old, _ := f.read.texts(field)
		texts, isSet := s.texts(field)
		if f.onCommandLine[name] || slices.Equal(old, texts) {
			continue
		}
		if field.Tag.Get("reload") == "" {
			later(name)
			continue
		}
		flag := f.set.Lookup(name)
		text := flag.DefValue
		if isSet {
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
	f.read = settings
	s.SetTokens(tokens)
	s.SetLimits(f.allLimits())
	s.Log.SetLevel(f.level())
	s.Log.Info("reloaded")
}

func (f *serveFlags) readAgain(s *service.Server, secure *security) (tokens service.Tokens, settings serveSettings, err error) {
	all, err := f.settings()
	if err != nil {
		return nil, settings, err
	}
	var later []string
	if err := f.reapplyConfig(&all.Serve, func(name string) { later = append(later, name) }); err != nil {
		return nil, settings, err
	}
	if err := f.checkLimits(); err != nil {
		return nil, settings, err
	}
	if tokens, err = f.readTokens(); err != nil {
		return nil, settings, err
	}
	if f.isOpen && tokens == nil && f.clientCA == "" {
		return nil, settings, fmt.Errorf("others reach this server: expected tokens or client-ca")
	}
	if secure == nil && f.certificate != "" {
		later, f.certificate, f.key, f.clientCA = append(later, "tls-cert"), "", "", ""
	}
	if err := secure.load(); err != nil {
		return nil, settings, err
	}
	for _, name := range later {
		s.Log.Warn("a setting has changed that a server takes when it starts", "setting", name)
	}
	return tokens, all.Serve, nil
}
