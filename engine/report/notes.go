// SPDX-License-Identifier: Apache-2.0

package report

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
)

// Notes is the output of `dump notes`: the notes of a file, and the code objects inside it.
type Notes struct {
	File   string
	Object *object.Object // nil where Format names another format
	Nested iter.Seq2[object.Nested, error]
	// Format is "archive", or "container" for an architecture's own format; "" for an ELF file
	// and for offload bundles and binaries.
	Format    string
	Arch      string // of the object; "" without a description
	Processor string // of the object, as far as its ELF flags name it
	// Decode returns the contents of a note, by its owner and type, that an architecture
	// owns: a Tree or another value that JSON can hold; nil where the architecture does not
	// know the note.
	Decode func(owner string, kind uint32, data []byte) (any, error)
	// Problem is called with the error of each part that could not be read.
	Problem func(error)
	Color   bool

	close func() error
}

// OpenNotes opens a file: FILE, or FILE#NAME for a code object inside it. See
// object.OpenNested for formats.
func OpenNotes(path string, formats object.Formats) (*Notes, error) {
	o, err := object.OpenNested(path, formats)
	if err == nil {
		return &Notes{File: path, Object: o, Nested: o.Nested(formats), close: o.Close}, nil
	}
	if !errors.Is(err, object.ErrNotELF) {
		return nil, err
	}
	if file, dsymErr := object.InDSYM(path); dsymErr == nil {
		path = file
	}
	m, mapErr := object.Map(path)
	if mapErr != nil {
		return nil, err
	}
	n := &Notes{File: path, close: m.Close}
	if nested, ok := object.NestedIn(path, m.Data(), formats); ok {
		n.Nested = nested
		if err = n.findFormat(m.Data(), err); err == nil {
			return n, nil
		}
	}
	return nil, errors.Join(err, m.Close())
}

// findFormat finds the format of a file that is no ELF file. The error is notELF where it has
// no code objects inside, or that a container cannot be read.
func (n *Notes) findFormat(data []byte, notELF error) error {
	if object.IsBundle(data) {
		return nil
	}
	n.Format = "container"
	if object.IsArchive(data) {
		n.Format = "archive"
	}
	for _, err := range n.Nested {
		if n.Format == "container" {
			return err
		}
		return nil
	}
	return notELF
}

// FindArch adds facts of the object's architecture, where m finds one.
func (n *Notes) FindArch(m *plugin.Manager) error {
	d, err := describeObject(m, n.Object)
	if err != nil {
		return fmt.Errorf("%s: %w", n.File, err)
	}
	if d != nil {
		n.Describe(d)
	}
	return nil
}

// Describe adds facts from the description of the object's architecture.
func (n *Notes) Describe(d *sdk.Description) {
	n.Arch = d.Name
	if p, ok := d.ObjectProcessor(n.Object.Flags()); ok {
		n.Processor = p.Name
	}
}

// Close closes the file.
func (n *Notes) Close() error { return n.close() }

// Tree is a map of a note's contents, in the order of the note. Its values are
// strings, numbers, bools, nil, lists ([]any) and Trees.
type Tree interface{ Members() iter.Seq2[string, any] }

// jsonNote is a note in JSON. Its type determines which of the last members it has.
type jsonNote struct {
	Section    string         `json:"section,omitempty"`
	Offset     string         `json:"offset"`
	Owner      string         `json:"owner"`
	Type       uint32         `json:"type"`
	TypeName   string         `json:"type_name,omitempty"`
	Size       int            `json:"size"` // of the data, bytes
	BuildID    string         `json:"build_id,omitempty"`
	Text       string         `json:"text,omitempty"`
	Properties []jsonProperty `json:"properties,omitempty"`
	Contents   any            `json:"contents,omitempty"`
}

// jsonProperty is a program property of NT_GNU_PROPERTY_TYPE_0.
type jsonProperty struct {
	Type  string `json:"type"`
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
}

// jsonNested is a code object inside the file.
type jsonNested struct {
	Index     int    `json:"index"`
	ID        string `json:"id"`
	Kind      string `json:"kind,omitempty"`
	Triple    string `json:"triple,omitempty"`
	Processor string `json:"processor,omitempty"`
	Image     string `json:"image,omitempty"`
	Source    string `json:"source,omitempty"`
	Member    string `json:"member,omitempty"`
	File      string `json:"file,omitempty"`
	Section   string `json:"section,omitempty"`
	Bundle    string `json:"bundle,omitempty"`
	Packing   string `json:"packing,omitempty"`
	Offset    string `json:"offset"`
	Size      int    `json:"size"`

	format string // of object.Nested
}

// WriteJSON writes the notes as one JSON value.
func (n *Notes) WriteJSON(w io.Writer) error {
	doc := struct {
		File       string       `json:"file"`
		Type       string       `json:"type"`
		Arch       string       `json:"arch,omitempty"`
		Processor  string       `json:"processor,omitempty"`
		ABIVersion uint8        `json:"abi_version,omitempty"`
		BuildID    string       `json:"build_id,omitempty"`
		Notes      []jsonNote   `json:"notes"`
		Nested     []jsonNested `json:"nested"`
		Problems   []string     `json:"problems"`
	}{
		File: n.File, Type: "bundle", Arch: n.Arch, Processor: n.Processor,
		Notes: []jsonNote{}, Nested: []jsonNested{},
	}
	var problems problemList
	if o := n.Object; o != nil {
		doc.Type, doc.ABIVersion, doc.BuildID = fileType(o), o.ABIVersion(), hex.EncodeToString(o.BuildID())
	}
	if n.Format != "" {
		doc.Type = n.Format
	}
	n.each(func(note jsonNote) error {
		doc.Notes = append(doc.Notes, note)
		return nil
	}, func(nested jsonNested) error {
		doc.Nested = append(doc.Nested, nested)
		return nil
	}, problems.add)
	doc.Problems = problems.list()
	return WriteJSON(w, doc)
}

// each calls note with every note and nested with every code object inside the
// file, until one of them returns an error.
func (n *Notes) each(note func(jsonNote) error, nested func(jsonNested) error, problem func(error)) {
	if n.Object != nil {
		for x, err := range n.Object.AllNotes() {
			if err != nil {
				problem(err)
				continue
			}
			var j jsonNote
			err := object.Guard(func() error {
				var err error
				j, err = n.note(&x)
				return err
			})
			if err != nil {
				problem(fmt.Errorf("%s: note at offset %#x, owner %.32q, type %#x: %w", n.File, x.Offset, x.Owner, x.Type, err))
			}
			if note(j) != nil {
				return
			}
		}
	}
	if n.Nested == nil {
		return
	}
	for x, err := range n.Nested {
		if err != nil {
			problem(err)
			continue
		}
		j := jsonNested{
			Index: x.Index, ID: x.Name, Section: x.Section, Packing: x.Packing, Offset: hexNumber(x.Offset), Size: len(x.Data),
		}
		j.Image, j.Source, j.Member, j.File, j.format = x.Image, x.Source, x.Member, x.File, x.Format
		if n.Format != "container" && x.Format != "archive" {
			j.Bundle = hexNumber(x.Bundle)
		}
		if hasEntryID[x.Format] {
			j.Kind, j.Triple, j.Processor = splitEntryID(x.Name)
		}
		if nested(j) != nil {
			return
		}
	}
}

// hasEntryID has the containers whose entries have IDs that splitEntryID reads.
var hasEntryID = map[string]bool{"offload bundle": true, "offload binary": true, "fat binary": true}

func hexNumber(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// splitEntryID splits the ID of a bundle's entry: the kind of offloading, the target triple
// of three or four components, and the processor with its features (Clang Offload Bundler,
// "Bundle Entry ID").
func splitEntryID(id string) (kind, triple, processor string) {
	kind, rest, ok := strings.Cut(id, "-")
	if !ok {
		return "", id, ""
	}
	parts := strings.SplitN(rest, "-", 5)
	n := min(len(parts), 4)
	// Older compilers left the environment out where they named a processor.
	if n == 4 && (strings.HasPrefix(parts[3], "gfx") || strings.HasPrefix(parts[3], "sm_")) {
		n = 3
	}
	return kind, strings.TrimSuffix(strings.Join(parts[:n], "-"), "-"), strings.Join(parts[n:], "-")
}

// note decodes a note. With an error the other members are valid.
func (n *Notes) note(x *object.Note) (jsonNote, error) {
	o := n.Object
	j := jsonNote{
		Section: x.Section, Offset: hexNumber(x.Offset), Owner: x.Owner, Type: x.Type, Size: len(x.Data),
		TypeName: noteTypeName(o.Type(), x.Owner, x.Type),
	}
	var err error
	switch j.TypeName {
	case "NT_GNU_BUILD_ID":
		j.BuildID = hex.EncodeToString(x.Data)
	case "NT_GNU_ABI_TAG":
		j.Text, err = abiTag(o, x.Data)
	case "NT_GNU_GOLD_VERSION", "NT_GO_BUILDID", "NT_FDO_PACKAGING_METADATA", "NT_FDO_DLOPEN_METADATA":
		j.Text = strings.ToValidUTF8(strings.TrimRight(string(x.Data[:min(len(x.Data), maxNoteText)]), "\x00"), "?")
	case "NT_GNU_PROPERTY_TYPE_0":
		j.Properties, err = properties(o, x.Data)
	case "NT_STAPSDT":
		j.Text, err = probe(o, x.Data)
	default:
		if n.Decode != nil {
			j.Contents, err = n.Decode(x.Owner, x.Type, x.Data)
		}
	}
	return j, err
}

// maxNoteText bounds the text of a note that is printed.
const maxNoteText = 1 << 16

// abiTag reads an NT_GNU_ABI_TAG: a system, and the lowest version of its kernel.
func abiTag(o *object.Object, b []byte) (string, error) {
	if len(b) < 16 {
		return "", fmt.Errorf("%d bytes, expected 16", len(b))
	}
	order := o.ByteOrder()
	system := fmt.Sprintf("system %d", order.Uint32(b))
	if s := order.Uint32(b); s < uint32(len(abiTagSystems)) {
		system = abiTagSystems[s]
	}
	return fmt.Sprintf("%s %d.%d.%d", system, order.Uint32(b[4:]), order.Uint32(b[8:]), order.Uint32(b[12:])), nil
}

// properties reads program properties: for each a type and a size of 4 bytes
// each, and its data, padded to the size of an address.
func properties(o *object.Object, b []byte) ([]jsonProperty, error) {
	order, pad := o.ByteOrder(), uint64(o.AddressSize())
	var list []jsonProperty
	for offset := uint64(0); offset < uint64(len(b)); {
		rest := b[offset:]
		if len(rest) < 8 {
			return list, fmt.Errorf("property at %#x: %d bytes, expected a type and a size", offset, len(rest))
		}
		kind, size := order.Uint32(rest), uint64(order.Uint32(rest[4:]))
		if size > uint64(len(rest)-8) {
			return list, fmt.Errorf("property at %#x, type %#x: %d bytes, expected at most %d", offset, kind, size, len(rest)-8)
		}
		list = append(list, property(o, kind, rest[8:8+size]))
		offset += 8 + (size+pad-1)&^(pad-1)
	}
	return list, nil
}

func property(o *object.Object, kind uint32, data []byte) jsonProperty {
	known, ok := commonProperties[kind]
	if !ok {
		known = processorProperties[elf.Machine(o.Machine())][kind]
	}
	p := jsonProperty{Type: hexNumber(uint64(kind)), Name: known.name}
	switch {
	case len(data) == 8 && known.bits == nil:
		p.Value = hexNumber(o.ByteOrder().Uint64(data))
	case len(data) == 4 && known.bits == nil:
		p.Value = hexNumber(uint64(o.ByteOrder().Uint32(data)))
	case len(data) == 4:
		var names []string
		left := o.ByteOrder().Uint32(data)
		for i, name := range known.bits {
			if left>>i&1 != 0 {
				names = append(names, name)
				left &^= 1 << i
			}
		}
		if left != 0 {
			names = append(names, hexNumber(uint64(left)))
		}
		p.Value = strings.Join(names, ", ")
	default:
		p.Value = hex.EncodeToString(data)
	}
	return p
}

// probe reads an NT_STAPSDT: three addresses, and the names of a provider and of
// its probe.
func probe(o *object.Object, b []byte) (string, error) {
	size := o.AddressSize()
	if len(b) < 3*size {
		return "", fmt.Errorf("%d bytes, expected three addresses of %d", len(b), size)
	}
	offset := uint64(o.ByteOrder().Uint32(b))
	if size == 8 {
		offset = o.ByteOrder().Uint64(b)
	}
	parts := strings.SplitN(string(b[3*size:]), "\x00", 4)
	if len(parts) < 3 {
		return "", fmt.Errorf("expected the names of a provider and a probe behind %d bytes", 3*size)
	}
	return strings.ToValidUTF8(fmt.Sprintf("probe %s:%s at %#x, arguments %s", parts[0], parts[1], offset, parts[2]), "?"), nil
}

// fileType is the type of an ELF file.
func fileType(o *object.Object) string {
	switch o.Type() {
	case elf.ET_REL:
		return "relocatable"
	case elf.ET_EXEC:
		return "executable"
	case elf.ET_DYN:
		return "shared"
	case elf.ET_CORE:
		return "core"
	}
	return fmt.Sprintf("type %d", o.Type())
}

// machOText is the machine of a Mach-O file, the system that it is for and its UUID.
func machOText(o *object.Object) string {
	f := o.MachO()
	text := f.MachineName()
	if build := f.Build(); build.Platform != "" {
		text += fmt.Sprintf(", %s %d.%d", build.Platform, build.Minimum>>16, build.Minimum>>8&0xff)
	}
	if id := o.BuildID(); len(id) == uuidSize {
		text += ", " + uuidText(id)
	}
	return text
}

// WriteText writes the notes as text.
func (n *Notes) WriteText(w io.Writer) error {
	b := NewPrinter(w)
	p := newPaint(n.Color)
	where := ""
	header := func(place string) {
		if place == where {
			return
		}
		if where != "" {
			b.printf("\n")
		}
		b.printf("%s\n", p.header(printable(place)))
		where = place
	}
	if o := n.Object; o != nil && o.IsMachO() {
		b.printf("%s\n", machOText(o))
	}
	if n.Processor != "" {
		b.printf("%s %s, ABI version %d\n\n", n.Arch, n.Processor, n.Object.ABIVersion())
	}
	n.each(func(j jsonNote) error {
		if j.Section == "" {
			header("segments")
		} else {
			header(j.Section)
		}
		noteText(b, &j)
		return b.check()
	}, func(j jsonNested) error {
		place := j.format
		switch {
		case j.format == "archive":
			place = ""
		case j.Bundle != "":
			place += " at " + j.Bundle
		}
		for _, outer := range []string{j.Section, j.Member} {
			if outer != "" {
				place = strings.TrimSuffix(outer+", "+place, ", ")
			}
		}
		// Of a fat binary each entry is packed by itself, or not.
		if j.Packing != "" && j.format != "fat binary" {
			place += ", packed by " + j.Packing
		}
		header(place)
		b.printf("  #%-4d  0x%08x  %8d bytes  %s", j.Index, parse(j.Offset), j.Size, printable(j.ID))
		details := j.Image
		if j.Packing != "" && j.format == "fat binary" {
			details = strings.TrimPrefix(details+", packed by "+j.Packing, ", ")
		}
		if details != "" {
			b.printf(" (%s)", details)
		}
		if j.Source != "" {
			b.printf("  %s", printable(j.Source))
		}
		b.printf("\n")
		return b.check()
	}, n.Problem)
	return b.Flush()
}

// noteText writes a note.
func noteText(b *Printer, j *jsonNote) {
	const indent = "    "
	kind := j.TypeName
	if kind == "" {
		kind = fmt.Sprintf("type %#x", j.Type)
	}
	b.printf("  0x%08x  %-8s  %-26s  %6d bytes\n", parse(j.Offset), printable(j.Owner), kind, j.Size)
	switch {
	case j.BuildID != "":
		b.printf("%s%s\n", indent, j.BuildID)
	case j.Text != "":
		b.printf("%s%s\n", indent, printable(j.Text))
	}
	for _, x := range j.Properties {
		name := x.Name
		if name == "" {
			name = "type " + x.Type
		}
		b.printf("%s%s: %s\n", indent, name, x.Value)
	}
	if isCompound(j.Contents) {
		writeTree(b, indent, indent, j.Contents)
	}
}

// writeTree writes a compound value, or text that scalar made, over several
// lines, as YAML does. The first line begins with lead, the others with indent.
func writeTree(b *Printer, lead, indent string, v any) {
	switch v := v.(type) {
	case Tree:
		for name, value := range v.Members() {
			b.printf("%s%s:", lead, printable(name))
			lead = indent
			if isCompound(value) {
				b.printf("\n")
				writeTree(b, indent+"  ", indent+"  ", value)
			} else {
				b.printf(" %s\n", scalar(value))
			}
		}
	case []any:
		for _, value := range v {
			if !isCompound(value) {
				value = scalar(value)
			}
			writeTree(b, lead+"- ", indent+"  ", value)
			lead = indent
		}
	case string:
		b.printf("%s%s\n", lead, v)
	}
}

// isCompound reports whether a value takes lines of its own.
func isCompound(v any) bool {
	switch v := v.(type) {
	case Tree:
		for range v.Members() {
			return true
		}
	case []any:
		return len(v) > 0
	}
	return false
}

func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return printable(v)
	case []byte:
		return hex.EncodeToString(v)
	case nil:
		return "nil"
	case Tree, []any:
		return "none"
	}
	return fmt.Sprint(v)
}

// printable returns text without effects on a terminal: s itself where it is plain, else s in
// quotes.
func printable(s string) string {
	if s == "" || strings.TrimSpace(s) != s || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return strconv.Quote(s)
		}
	}
	return s
}
