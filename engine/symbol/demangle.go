package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

const (
	// maxMangled is the longest name that is demangled. The demangler recurses
	// on its input, and on some names its time grows with their square: at this
	// length a tenth of a second.
	maxMangled = 1 << 13
	// maxDemangled is the longest result, as the power of two the demangler
	// takes: names that refer back to themselves grow exponentially.
	maxDemangled = 16
)

// The styles of LLVM's tools and of the GNU ones.
var (
	styleLLVM = []demangle.Option{demangle.LLVMStyle, demangle.MaxLength(maxDemangled)}
	styleGNU  = []demangle.Option{demangle.MaxLength(maxDemangled)}
)

// StripVersion cuts the symbol version (@VERSION, or @@VERSION for the default
// one) that a linker appends to names in .symtab.
func StripVersion(name string) string {
	at := strings.IndexByte(name, '@')
	if at <= 0 {
		return name
	}
	version := strings.TrimPrefix(name[at+1:], "@")
	if version == "" {
		return name
	}
	for i := 0; i < len(version); i++ {
		switch c := version[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-', c == '+':
		default:
			return name
		}
	}
	return name[:at]
}

// Demangle gives the readable form of a linkage name in the style of LLVM's
// tools: Itanium C++, and Rust's legacy and v0 manglings (the hash of a legacy
// name is left out). A symbol version is stripped first. A name that is not
// mangled, such as one of C or Go, comes back as it is, and so does one that
// cannot be demangled, is longer than 8 KiB, or would reach 64 KiB.
//
// Results are cached. The result may share memory with name, and the cache keeps
// it: a name in mapped memory must be copied first. It is safe for concurrent use.
func Demangle(name string) string {
	name = StripVersion(name)
	if !isMangled(name) || len(name) > maxMangled {
		return name
	}
	return names.get(name, demangleOnce)
}

// DemangleGNU is Demangle in the style of the GNU tools: with a blank between
// two closing angle brackets, and every suffix of a clone in brackets of its own.
func DemangleGNU(name string) string {
	name = StripVersion(name)
	if !isMangled(name) || len(name) > maxMangled {
		return name
	}
	return namesGNU.get(name, func(name string) string { return demangleAs(name, styleGNU) })
}

// isMangled tells by the prefixes that LLVM's demanglers accept on ELF.
func isMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") || strings.HasPrefix(name, "___Z")
}

// demangleOnce demangles in LLVM's style without the cache.
func demangleOnce(name string) string { return finishLLVM(demangleAs(name, styleLLVM)) }

// finishLLVM changes what the library writes otherwise than LLVM.
func finishLLVM(s string) string { return joinOperators(joinSuffixes(s)) }

// DemangleLLVM is Demangle, but names that LLVM 22 leaves mangled come back as
// they are: clones for transactional memory (_ZGT), and those in which gcc has
// written a qualified name in std in its own way (srSt). And as in LLVM
// constructors and destructors of types without a name have no name either:
// 'unnamed'::~().
func DemangleLLVM(name string) string {
	if strings.HasPrefix(name, "_ZGT") || strings.HasPrefix(name, "_Z") && hasExpression(name, isStdQualified) {
		return StripVersion(name)
	}
	if name = StripVersion(name); mayBuildUnnamed(name) && len(name) <= maxMangled {
		return namesOfUnnamed.get(name, demangleUnnamed)
	}
	return Demangle(name)
}

// mayBuildUnnamed says whether a name may have a constructor or a destructor
// (ABI 5.1.4.3) of a closure or of a type without a name (5.1.9), which end in an
// underscore.
func mayBuildUnnamed(name string) bool {
	return strings.HasPrefix(name, "_Z") && (strings.Contains(name, "_C") || strings.Contains(name, "_D")) &&
		(strings.Contains(name, "Ut") || strings.Contains(name, "Ul"))
}

// demangleUnnamed demangles in LLVM's style without the cache.
func demangleUnnamed(name string) string {
	return finishLLVM(demangleBy(name, func(name string) (string, error) {
		tree, err := demangle.ToAST(name, styleLLVM...)
		if err != nil {
			return "", err
		}
		tree.Traverse(func(a demangle.AST) bool {
			switch a := a.(type) {
			case *demangle.Constructor:
				if unnamed(a.Name) {
					a.Name = &demangle.Name{}
				}
			case *demangle.Destructor:
				if unnamed(a.Name) {
					a.Name = &demangle.Name{}
				}
			}
			return true
		})
		return demangle.ASTToString(tree, styleLLVM...), nil
	}))
}

func unnamed(a demangle.AST) bool {
	switch a.(type) {
	case *demangle.UnnamedType, *demangle.Closure:
		return true
	}
	return false
}

func isStdQualified(after string) bool { return strings.HasPrefix(after, "St") }

// joinOperators cuts the blank before template arguments that the library
// writes after operators that end with an angle bracket.
func joinOperators(s string) string {
	if !strings.Contains(s, "operator<") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "operator<< <", "operator<<<"), "operator< <", "operator<<")
}

// misread says whether a name has an expression with a qualified name (sr, ABI
// 5.1.6.3) whose qualifier is not just std, which the library misreads; see
// rewriteQualified.
func misread(name string) bool {
	return hasExpression(name, func(after string) bool {
		return after != "" && isDigit(after[0]) && !strings.HasPrefix(after, "3stdE")
	})
}

// hasExpression says whether what follows sr is of a kind, in one of the places
// where an expression may be: after X, E or an operator, and so not in the
// middle of most identifiers.
func hasExpression(name string, kind func(after string) bool) bool {
	from := strings.IndexByte(name, 'X') + 1
	for from > 0 {
		at := strings.Index(name[from:], "sr")
		if at < 0 {
			return false
		}
		at += from
		from = at + 2
		if c := name[at-1]; kind(name[from:]) && (c == 'X' || c == 'E' || isLower(c) && isLower(name[at-2])) {
			return true
		}
	}
	return false
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// demangleAs demangles in a style.
func demangleAs(name string, style []demangle.Option) string {
	return demangleBy(name, func(name string) (string, error) { return demangle.ToString(name, style...) })
}

// demangleBy demangles, names of C++ by a function. A demangler that panics on a
// hostile name costs only that name.
func demangleBy(name string, cpp func(name string) (string, error)) (readable string) {
	defer func() {
		if recover() != nil {
			readable = name
		}
	}()
	if strings.HasPrefix(name, "_R") {
		if readable, err := demangleRust(name); err == nil {
			return readable
		}
		return name
	}
	if readable, ok := demangleLegacyRust(name); ok {
		return readable
	}
	given := name
	if misread(name) {
		var ok bool
		if given, ok = rewriteQualified(name); !ok || misread(given) || strings.Contains(name, memberMark) {
			return name
		}
	}
	s, err := cpp(given)
	if err != nil || s == "" || len(s) >= 1<<maxDemangled {
		return name
	}
	return strings.ReplaceAll(s, "."+memberMark, "::")
}

// joinSuffixes turns the groups of a clone's suffixes at the end of a name,
// such as " (.part.0) (.cold)", into the single group that LLVM writes.
func joinSuffixes(s string) string {
	for strings.HasSuffix(s, ")") {
		last := strings.LastIndex(s, " (.")
		if last <= 0 || s[last-1] != ')' {
			return s
		}
		previous := strings.LastIndex(s[:last], " (.")
		if previous < 0 || strings.IndexByte(s[previous:last-1], ')') >= 0 {
			return s
		}
		s = s[:last-1] + s[last+2:]
	}
	return s
}
