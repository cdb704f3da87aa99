// SPDX-License-Identifier: Apache-2.0

package v8

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// value is a number that V8 says of itself, or that a version is known by: the size of something,
// the place of a member, the number of a type.
type value uint8

// The numbers that are needed. Offsets are from an object's address without its tag.
const (
	taggedSize value = iota
	smiShiftSize
	fpContext
	fpFunction
	fpBytecodeArray
	fpBytecodeOffset
	functionShared
	sharedData
	sharedName
	sharedScript
	sharedFlags
	arrayLength
	arrayData
	bytecodeData
	bytecodePositions
	streamStart // where the first instruction of code is
	streamCode
	codeStart // 0: the instructions are in the object itself
	codeSize
	codeFlags
	codeData
	codePositions
	mapType
	stringLength
	oneByteChars
	twoByteChars
	consFirst
	consSecond
	slicedParent
	slicedOffset
	thinActual
	externalResource
	scriptSource
	scriptName
	scriptLineEnds
	scriptLineOffset
	scriptColumnOffset
	scriptEvalFrom
	scriptEvalPosition
	scriptSourceURL
	objectProperties
	symbolName
	messageType // of a message, before its argument
	siteWords   // of a frame in an error's stack; 0: it is an object
	siteFunction
	siteCode
	siteOffset
	siteFlags
	mapPrototype
	mapFlags
	mapDescriptors
	descriptorsData
	mapInObject // a byte: where an object's properties begin, in words
	mapSize     // a byte: an object's size, in words
	scopeFlags  // 32 bits, of which older versions make a number of 64
	typeFunction
	typeFunctionLast
	typeContext
	typeContextLast
	typeShared
	typeScript
	typeBytecodeArray
	typeScopeInfo
	typeMap
	typeFixedArray
	typeByteArray
	typePlainByteArray // of an array that is not protected, where others are
	typeInterpreterData
	typeStream
	typeCode
	firstNonstring
	stringForm
	stringSeq
	stringCons
	stringExternal
	stringSliced
	stringThin
	stringEncoding
	stringOneByte
	scopeOfModule // the kind of scope
	codeKindMask
	kindBaseline
	deoptLiterals // the index of literals, and of the first list of frames
	deoptFirst
	typeDescriptors
	typeDescriptorsLast
	typeSymbol
	typeMessage
	typeSite
	typeErrorStack
	siteHasPosition // the bit of a call site's flags that says that it has a position, and no offset
	frameBuiltinExit
	descriptorsShift
	indexShift
	descriptorsMask // from here on, numbers of 32 bits
	locationMask
	indexMask
	valueCount
)

// described are the names under which V8 says its numbers, without their prefix, which versions
// have called differently. A version's table has what V8 does not say.
var described = [valueCount][]string{
	taggedSize:          {"TaggedSize"},
	smiShiftSize:        {"SmiShiftSize"},
	fpContext:           {"off_fp_context"},
	fpFunction:          {"off_fp_function"},
	fpBytecodeArray:     {"off_fp_bytecode_array"},
	fpBytecodeOffset:    {"off_fp_bytecode_offset"},
	functionShared:      {"class_JSFunction__shared__SharedFunctionInfo"},
	sharedData:          {"class_SharedFunctionInfo__function_data__Object"},
	sharedName:          {"class_SharedFunctionInfo__name_or_scope_info__Object", "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_", "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"},
	sharedScript:        {"class_SharedFunctionInfo__script_or_debug_info__HeapObject", "class_SharedFunctionInfo__script__Tagged_HeapObject_"},
	sharedFlags:         {"class_SharedFunctionInfo__flags__int"},
	arrayLength:         {"class_FixedArrayBase__length__SMI"},
	arrayData:           {"class_FixedArray__data__uintptr_t"},
	bytecodeData:        {"class_BytecodeArray__data__uintptr_t"},
	streamStart:         {"class_InstructionStream__instruction_start__uintptr_t", "class_Code__instruction_start__uintptr_t"},
	codeStart:           {"class_Code__instruction_start__Address"},
	codeSize:            {"class_Code__instruction_size__int"},
	codeFlags:           {"class_Code__flags__uint32_t"},
	codeData:            {"class_Code__bytecode_or_interpreter_data__HeapObject"},
	codePositions:       {"class_Code__bytecode_offset_table__ByteArray"},
	mapType:             {"class_Map__instance_type__uint16_t"},
	stringLength:        {"class_String__length__int32_t"},
	oneByteChars:        {"class_SeqOneByteString__chars__char"},
	twoByteChars:        {"class_SeqTwoByteString__chars__char"},
	consFirst:           {"class_ConsString__first__String"},
	consSecond:          {"class_ConsString__second__String"},
	slicedParent:        {"class_SlicedString__parent__String"},
	slicedOffset:        {"class_SlicedString__offset__SMI"},
	thinActual:          {"class_ThinString__actual__String"},
	externalResource:    {"class_ExternalString__resource__Object"},
	scriptSource:        {"class_Script__source__Object"},
	scriptName:          {"class_Script__name__Object"},
	scriptLineEnds:      {"class_Script__line_ends__Object"},
	scriptEvalFrom:      {"class_Script__eval_from_shared_or_wrapped_arguments__Object", "class_Script__eval_from_shared_or_wrapped_arguments__Tagged_Object_", "class_Script__eval_from_shared_or_wrapped_arguments_or_sfi_table__Object"},
	scriptEvalPosition:  {"class_Script__eval_from_position__SMI"},
	typeFunction:        {"FirstJSFunctionType", "type_JSFunction__JS_FUNCTION_TYPE"},
	typeFunctionLast:    {"LastJSFunctionType"},
	typeContext:         {"FirstContextType"},
	typeContextLast:     {"LastContextType"},
	typeShared:          {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"},
	typeScript:          {"type_Script__SCRIPT_TYPE"},
	typeBytecodeArray:   {"type_BytecodeArray__BYTECODE_ARRAY_TYPE"},
	typeScopeInfo:       {"type_ScopeInfo__SCOPE_INFO_TYPE"},
	typeMap:             {"type_Map__MAP_TYPE"},
	typeFixedArray:      {"type_FixedArray__FIXED_ARRAY_TYPE"},
	typeByteArray:       {"type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", "type_ByteArray__BYTE_ARRAY_TYPE"},
	typePlainByteArray:  {"type_ByteArray__BYTE_ARRAY_TYPE"},
	typeInterpreterData: {"type_InterpreterData__INTERPRETER_DATA_TYPE"},
	typeStream:          {"type_InstructionStream__INSTRUCTION_STREAM_TYPE", "type_Code__CODE_TYPE"},
	typeCode:            {"type_Code__CODE_TYPE"},
	codeKindMask:        {"CodeKindFieldMask"},
	kindBaseline:        {"CodeKindBaseline"},
	firstNonstring:      {"FirstNonstringType"},
	stringForm:          {"StringRepresentationMask"},
	stringSeq:           {"SeqStringTag"},
	stringCons:          {"ConsStringTag"},
	stringExternal:      {"ExternalStringTag"},
	stringSliced:        {"SlicedStringTag"},
	stringThin:          {"ThinStringTag"},
	stringEncoding:      {"StringEncodingMask"},
	stringOneByte:       {"OneByteStringTag"},
	objectProperties:    {"class_JSReceiver__raw_properties_or_hash__Object", "class_JSReceiver__raw_properties_or_hash__Tagged_Object_"},
	symbolName:          {"class_Symbol__name__Object"},
	messageType:         {"class_JSMessageObject__raw_type__SMI"},
	mapPrototype:        {"class_Map__prototype__Object"},
	mapFlags:            {"class_Map__bit_field3__int"},
	mapDescriptors:      {"class_Map__instance_descriptors_offset"},
	descriptorsData:     {"class_DescriptorArray__header_size__uintptr_t"},
	mapInObject:         {"class_Map__inobject_properties_start_or_constructor_function_index__char"},
	mapSize:             {"class_Map__instance_size_in_words__char"},
	typeDescriptors:     {"type_DescriptorArray__DESCRIPTOR_ARRAY_TYPE"},
	typeDescriptorsLast: {"type_StrongDescriptorArray__STRONG_DESCRIPTOR_ARRAY_TYPE"},
	typeSymbol:          {"type_Symbol__SYMBOL_TYPE"},
	typeMessage:         {"type_JSMessageObject__JS_MESSAGE_OBJECT_TYPE"},
	typeSite:            {"type_CallSiteInfo__CALL_SITE_INFO_TYPE"},
	typeErrorStack:      {"type_ErrorStackData__ERROR_STACK_DATA_TYPE"},
	frameBuiltinExit:    {"frametype_BuiltinExitFrame"},
	descriptorsMask:     {"bit_field3_number_of_own_descriptors_mask"},
	descriptorsShift:    {"bit_field3_number_of_own_descriptors_shift"},
	locationMask:        {"prop_location_mask"},
	indexMask:           {"prop_index_mask"},
	indexShift:          {"prop_index_shift"},
}

// prefix begins the names of the symbols in which V8 describes itself to debuggers: each is a
// number of 32 bits.
const prefix = "v8dbg_"

// The symbols of V8's own version, numbers of 32 bits.
const (
	symbolMajor = iota
	symbolMinor
	symbolBuild
	symbolPatch
	symbolFirst // of the numbers that are described
)

// symbolNames are the symbols that are looked up, and descriptions the place of each value's first
// name among them.
var symbolNames, descriptions = func() (names []string, first [valueCount]int) {
	for _, member := range []string{"6major_E", "6minor_E", "6build_E", "6patch_E"} {
		names = append(names, "_ZN2v88internal7Version"+member)
	}
	for v, list := range described {
		first[v] = len(names)
		for _, name := range list {
			names = append(names, prefix+name)
		}
	}
	return append(names, codeSymbols...), first
}()

// scopePart is a part of a ScopeInfo behind its first members, in tagged words.
type scopePart uint8

const (
	partPositions       scopePart = iota // where the function begins and ends: always there
	partModuleVariables                  // their number, in the scope of a module
	partLocals                           // names of locals, or a table of many, and a word for each
	partSavedClass
	partFunctionName // a word more behind it
	partInferredName
)

// version has the numbers of a version of V8 that it does not say of itself.
type version struct {
	major, minor int64
	known        map[value]int64 // with addresses of 64 bits and without compressed pointers
	scope        []scopePart
	bytecodes    string // as bytecodeSize has them
	translations translations
	safepoints   safepoints
}

// versions are the versions of V8 that are known: as in Node.js 18, 20, 22 and 24.
var versions = []version{
	{
		10, 2,
		map[value]int64{typeFunctionLast: 2081, bytecodePositions: 32, scriptLineOffset: 24, scriptColumnOffset: 32, scriptSourceURL: 104, scopeFlags: 12, scopeOfModule: 3, streamCode: 8, codeStart: 0, codeData: 16, codePositions: 24, deoptLiterals: 2, deoptFirst: 11, siteWords: 0, siteFunction: 16, siteCode: 24, siteOffset: 32, siteFlags: 40, siteHasPosition: 6},
		[]scopePart{partLocals, partSavedClass, partFunctionName, partInferredName},
		"00000000001020304022321000100000000000103030101010201010100000000120202030101030301030301130302020203030303030" +
			"31102020202020202020202020202020202020202020202020201010101000000010101040403040504020304040223221214040202020" +
			"20202020201010101000212100102100212021102020202000000020101010101010101010101010101010101010101010103010202040" +
			"100000000010000010304030300010100000000000000000000000000000000000",
		translations{"2103113131111111115334111112", []int{3}, 0, []int{18}, []int{19, 20}, []int{0, 6, 8, 21}, 0},
		safepoints{0, 4, 8, 16},
	},
	{
		11, 3,
		map[value]int64{typeFunctionLast: 2082, bytecodePositions: 32, scriptLineOffset: 24, scriptColumnOffset: 32, scriptSourceURL: 112, scopeFlags: 12, scopeOfModule: 3, streamCode: 8, codeStart: 40, codeSize: 56, codeFlags: 48, deoptLiterals: 2, deoptFirst: 11, siteWords: 0, siteFunction: 16, siteCode: 24, siteOffset: 32, siteFlags: 40, siteHasPosition: 6},
		[]scopePart{partLocals, partSavedClass, partFunctionName, partInferredName},
		"00000000001020304022321000100000000000103030101010201010100000000120202030101030301030301130302020203030303130" +
			"31202020202020202020202020202020202020202020202020101010100000001010103040403040504020304040223221214040202020" +
			"20202020201010101000222100102100212021102020202000000030101010101010101010101010101010101010101010103010202040" +
			"100000000010000010304030300010100000000000000000000000000000000000",
		translations{"103311313111112111111115333401111121", []int{2, 3}, 1, []int{23, 24}, []int{25, 26}, []int{6, 8, 14, 27}, 35},
		safepoints{0, 4, 8, 16},
	},
	{
		12, 4,
		map[value]int64{sharedData: 8, bytecodePositions: 24, scriptLineOffset: 24, scriptColumnOffset: 32, scriptSourceURL: 112, scopeFlags: 12, scopeOfModule: 3, streamCode: 8, codeData: 8, codePositions: 16, deoptLiterals: 2, deoptFirst: 11, siteWords: 0, siteCode: 8, siteFunction: 24, siteOffset: 32, siteFlags: 40, siteHasPosition: 7},
		[]scopePart{partModuleVariables, partLocals, partSavedClass, partFunctionName, partInferredName},
		"00000000001020304022321000100000000000103030101010201010100000000120202030103010103030103030113030204020203030" +
			"30313031202020202020202020202020202020202020202020202020101010100000001010103040403040504020304040223221214040" +
			"20202020202020202000101010000022210010210021202110202020200000003010101010101010101010101010101010101010101010" +
			"3010202040100000000010000010304030300010100000000000000000000000000000000000",
		translations{"5333213432103311111111111111111101111121", []int{12, 13}, 1, []int{0, 1}, []int{2, 3}, []int{4, 5, 6, 7, 8, 9}, 39},
		safepoints{0, 4, 8, 16},
	},
	{
		13, 6,
		map[value]int64{sharedData: 8, bytecodePositions: 24, scriptLineOffset: 24, scriptColumnOffset: 32, scriptSourceURL: 112, scopeFlags: 8, scopeOfModule: 5, streamCode: 8, codeData: 8, codePositions: 16, deoptLiterals: 3, deoptFirst: 12, siteWords: 6, siteCode: 0, siteFunction: 16, siteOffset: 24, siteFlags: 40, siteHasPosition: 7},
		[]scopePart{partPositions, partModuleVariables, partLocals, partSavedClass, partFunctionName, partInferredName},
		"00000000001020304022321000100000000000103030301010101020101010000000012020203010301010303030103030301130302040" +
			"20203030303130312020202020202020202020202020202020202020202020201010101000001010101030404030405040203040402232" +
			"21214040202020202020202020001010100000222100102100212021102020202000000030101010101010101010103010101010101010" +
			"10101010103030102040100000000010000010304030300010100000000000000000000000000000000000",
		translations{"643321343331003311101111111111111111101111121", []int{14, 15}, 1, []int{0, 1}, []int{2, 3}, []int{4, 5, 6, 7, 8, 9, 10}, 44},
		safepoints{4, 8, 12, 16},
	},
}

// knownVersions are the versions as text.
func knownVersions() string {
	list := make([]string, len(versions))
	for i := range versions {
		list[i] = fmt.Sprintf("%d.%d", versions[i].major, versions[i].minor)
	}
	return strings.Join(list, ", ")
}

// layout has the numbers of the V8 in a process.
type layout struct {
	values [valueCount]int64
	*version
}

// offset returns a number that is an offset or a size.
func (l *layout) offset(v value) uint64 { return uint64(l.values[v]) } //nolint:gosec // checked

// errNowhere is returned for a module whose data is not in the process: V8 maps its code twice.
var errNowhere = errors.New("none of its symbols is in the process")

// errNoNumbers is returned for a V8 that does not describe itself, such as Chromium's.
var errNoNumbers = errors.New("its build says neither its version nor, by " + prefix + " symbols, where its objects have what")

// collectorSection is a section of V8's garbage collector of C++ objects, in Chromium: its builds
// have no symbols.
const collectorSection = "gc_info_section"

// isHere reports whether a module without V8's numbers has V8, and is in the process.
func isHere(req *sdk.OpenRuntimeRequest) bool {
	if req.Symbols[len(symbolNames)-len(codeSymbols)+symbolVersionText].IsKnown {
		return true
	}
	return slices.ContainsFunc(req.Sections, func(s sdk.SectionInfo) bool {
		_, ok := req.MemoryAddress(s.Address)
		return ok && s.Name == collectorSection
	})
}

// newLayout reads the numbers of a process, and the text of V8's version.
func newLayout(r *sdk.MemoryReader, req *sdk.OpenRuntimeRequest) (l *layout, text string, err error) {
	if len(req.Symbols) != len(symbolNames) {
		return nil, "", fmt.Errorf("the engine has %d symbols, expected %d", len(req.Symbols), len(symbolNames))
	}
	if !slices.ContainsFunc(req.Symbols[:len(symbolNames)-len(codeSymbols)], func(s sdk.SymbolPlace) bool { return s.IsKnown }) {
		if isHere(req) {
			return nil, "", errNoNumbers
		}
		return nil, "", errNowhere
	}
	read := func(symbol int) (int64, bool) {
		s := &req.Symbols[symbol]
		if !s.IsKnown {
			return 0, false
		}
		n, err := r.Uint(s.Address, 4)
		return int64(int32(n)), err == nil //nolint:gosec // a number of 32 bits
	}
	var number [symbolFirst]int64
	for i := range number {
		n, ok := read(i)
		if !ok {
			return nil, "", fmt.Errorf("its version is not known: %s is not in the process", symbolNames[i])
		}
		number[i] = n
	}
	text = fmt.Sprintf("%d.%d.%d.%d", number[symbolMajor], number[symbolMinor], number[symbolBuild], number[symbolPatch])
	at := slices.IndexFunc(versions, func(v version) bool {
		return v.major == number[symbolMajor] && v.minor == number[symbolMinor]
	})
	if at < 0 {
		return nil, text, fmt.Errorf("V8 %s is not known, only %s are", text, knownVersions())
	}
	l = &layout{version: &versions[at]}
	for v, names := range described {
		n, ok := versions[at].known[value(v)] //nolint:gosec // below valueCount
		for i := 0; i < len(names) && !ok; i++ {
			n, ok = read(descriptions[v] + i)
		}
		if !ok {
			return nil, text, fmt.Errorf("%s%s is not in the process", prefix, strings.Join(names, " or "+prefix))
		}
		l.values[v] = n
	}
	return l, text, l.check(req)
}

// machineX86 is the e_machine of x86-64.
const machineX86 = 62

// maxOffset bounds the places of members, in bytes.
const maxOffset = 1 << 10

// check returns an error for numbers that cannot be.
func (l *layout) check(req *sdk.OpenRuntimeRequest) error {
	if req.Machine != machineX86 {
		return fmt.Errorf("its machine is %d: only V8 on x86-64 is known", req.Machine)
	}
	if req.AddressBits != 64 || req.ByteOrder != sdk.LittleEndian || l.values[taggedSize] != 8 {
		return fmt.Errorf("its pointers in objects have %d bytes, in addresses of %d bits: only 8 in 64 are known", l.values[taggedSize], req.AddressBits)
	}
	if l.values[smiShiftSize] != 31 {
		return fmt.Errorf("%sSmiShiftSize is %d, expected 31", prefix, l.values[smiShiftSize])
	}
	for v := fpContext; v < typeFunction; v++ {
		n := l.values[v]
		if isInFrame := v <= fpBytecodeOffset; isInFrame {
			n = -n
		}
		if n < 0 || n > maxOffset {
			return fmt.Errorf("%s%s is %d, expected less than %d bytes", prefix, described[v], l.values[v], maxOffset)
		}
	}
	for v := typeFunction; v < descriptorsMask; v++ {
		if n := l.values[v]; n < 0 || n > 1<<16 {
			return fmt.Errorf("%s%s is %d, expected a number of 16 bits", prefix, described[v], n)
		}
	}
	return nil
}
