; The descriptors of the document's examples of LLVM 3.6, and one of each that it
; describes besides: a string has the members, with zero bytes between them.
@MyGlobal = global i32 100, align 4

define i32 @main(i32 %argc, i8** %argv) {
entry:
  %n = alloca i32, align 4
  call void @llvm.dbg.declare(metadata i32* %n, metadata !20, metadata !22), !dbg !24
  store i32 0, i32* %n, align 4, !dbg !25
  call void @llvm.dbg.value(metadata i32 %argc, i64 0, metadata !21, metadata !22), !dbg !24
  %half = sdiv i32 %argc, 2, !dbg !26
  call void @llvm.dbg.value(metadata i32 %half, i64 0, metadata !21, metadata !23), !dbg !24
  ret i32 %half, !dbg !27
}

!llvm.dbg.cu = !{!0}

!0 = metadata !{
  metadata !"0x11\0012\00clang version 3.6.0 \000\00\000\00\001",
  metadata !1,               ;; File
  metadata !2,               ;; Enum Types
  metadata !2,               ;; Retained Types
  metadata !2,               ;; Subprograms
  metadata !3,               ;; Global Variables
  metadata !2                ;; Imported entities
} ; [ DW_TAG_compile_unit ]
!1 = metadata !{
  metadata !"foo.c",         ;; Filename
  metadata !"/src"           ;; Directory
}
!2 = metadata !{}
!3 = metadata !{
  metadata !4
}
!4 = metadata !{
  metadata !"0x34\00MyGlobal\00MyGlobal\00\001\000\001",
  null,                      ;; Unused
  metadata !5,               ;; File
  metadata !6,               ;; Type
  i32* @MyGlobal,            ;; LLVM-IR Value
  null                       ;; Static member declaration
} ; [ DW_TAG_variable ]
!5 = metadata !{
  metadata !"0x29",
  metadata !1                ;; File/directory pair
} ; [ DW_TAG_file_type ]
!6 = metadata !{
  metadata !"0x24\00int\000\0032\0032\000\000\005",
  null,                      ;; Unused
  null                       ;; Unused
} ; [ DW_TAG_base_type ]
!7 = metadata !{
  metadata !"0x2e\00main\00main\00\001\000\001\000\000\00256\000\001",
  metadata !1,               ;; File
  metadata !5,               ;; Context
  metadata !8,               ;; Type
  null,                      ;; Containing type
  i32 (i32, i8**)* @main,    ;; Pointer to llvm::Function
  null,                      ;; Function template parameters
  null,                      ;; Function declaration
  metadata !2                ;; List of function variables
}
!8 = metadata !{metadata !"0x15\00\000\000\000\000\000\000", null, null, null, metadata !9, null, null, null}
!9 = metadata !{metadata !6, metadata !6, metadata !10}
!10 = metadata !{metadata !"0xf\00\000\0064\0064\000\000", null, null, metadata !11}
!11 = metadata !{metadata !"0xf\00\000\0064\0064\000\000", null, null, metadata !12}
!12 = metadata !{metadata !"0x24\00char\000\008\008\000\000\006", null, null}
!13 = metadata !{metadata !"0x1\00\000\00160\0032\000\000\000", null, null, metadata !6, metadata !14, null, null, null}
!14 = metadata !{metadata !15}
!15 = metadata !{metadata !"0x21\000\004"}
!16 = metadata !{metadata !"0x4\00color\003\0032\0032\000\000\000", metadata !1, null, null, metadata !17, null, null, metadata !"_ZTS5color"}
!17 = metadata !{metadata !18}
!18 = metadata !{metadata !"0x28\00RED\007"}
!19 = metadata !{metadata !"0xb\003\004\000", metadata !1, metadata !7}
!20 = metadata !{metadata !"0x100\00n\003\000", metadata !19, metadata !5, metadata !13}
!21 = metadata !{metadata !"0x101\00argc\0016777217\000", metadata !7, metadata !5, metadata !6}
!22 = metadata !MDExpression()
!23 = metadata !MDExpression(DW_OP_plus, 8)
!24 = metadata !{i32 1, i32 14, metadata !7, null}
!25 = metadata !{i32 3, i32 9, metadata !19, null}
!26 = metadata !{i32 4, i32 5, metadata !28, null}
!27 = metadata !{i32 5, i32 3, metadata !7, null}
!28 = metadata !{metadata !"0xb\000", metadata !29, metadata !19}
!29 = metadata !{metadata !"foo.inc", metadata !"/src"}
