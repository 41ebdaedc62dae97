# Files below the script's directory and TMP, and a script that sources another.
set tmp $::env(TMP)
file mkdir $tmp/a/b
set out [open $tmp/a/b/text.txt w]
puts $out "first line"
puts -nonewline $out "second"
close $out
set out [open [file join $tmp a b text.txt] a]
puts $out " line"
close $out
set in [open $tmp/a/b/text.txt]
puts [gets $in]
puts [gets $in line]
puts $line
puts "[gets $in line] [eof $in]"
close $in
set in [open $tmp/a/b/text.txt r]
set all [read $in]
close $in
puts [string length $all]
foreach line [split [string trim $all] \n] { puts "<$line>" }
puts "[file exists $tmp/a] [file exists $tmp/none] [file isdirectory $tmp/a] [file tail $tmp/a/b/text.txt] [file extension x.tcl]"
puts [catch {open $tmp/none/file r}]
set out [open $tmp/part.tcl w]
puts $out {puts "from the part: $shared"; set back 3; return ignored; puts never}
close $out
set shared yes
source $tmp/part.tcl
puts $back
puts "[expr {[file normalize .] eq [pwd]}] [expr {[file normalize $tmp/a/../a/./b] eq [file normalize $tmp/a/b]}]"
puts [file tail [file normalize $tmp/a/b/../none.txt]]
exit 3
